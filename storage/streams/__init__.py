"""Event streams: sequencer, log, hub, outbox and subscriptions."""
