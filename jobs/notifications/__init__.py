"""Sends notifications to people who are offline: pushes to devices, and digests by mail."""
