"""Presence: who is online and who is typing, in Redis only, and the switches that turn it off."""
