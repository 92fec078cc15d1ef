"""Reads delivery events from what mail providers and log shippers send over HTTP. Nothing here answers requests."""
