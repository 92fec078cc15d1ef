"""Event streams: changes are committed by the sequencer, read from the log, and delivered by the hub."""
