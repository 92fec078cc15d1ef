"""Use cases of the bounce address book."""
