"""Limits on what connections may hold in memory: data that clients have not taken, and bodies that still arrive."""
