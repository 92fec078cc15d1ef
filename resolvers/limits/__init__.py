"""Limits on what people, services and organizations may do at a time or in a minute, in one process."""
