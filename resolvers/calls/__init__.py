"""Use cases of outbound calls."""
