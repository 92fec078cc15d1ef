"""Shared secrets, versioned keys, sealed credentials and signed URLs."""
