"""Wiring: settings, processes, HTTP and WebSocket. Sees everything; nothing imports it."""
