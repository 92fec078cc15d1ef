"""Reports of publications that may need a person: what they hold, and who is notified."""
