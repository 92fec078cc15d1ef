"""Workers of webhooks: they find events in the log, send them, and mail notices of disabled webhooks."""
