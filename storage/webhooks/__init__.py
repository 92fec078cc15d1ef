"""Webhooks: readers of the event log that send events to addresses of organizations."""
