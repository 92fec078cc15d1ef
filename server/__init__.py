"""Wiring: settings, processes, HTTP and WebSocket. It may import every package; no package imports it."""
