"""Starts the comparison: `python -m benchmarks.peers`."""

from benchmarks.peers.comparison import app

app()
