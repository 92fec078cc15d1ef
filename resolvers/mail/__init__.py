"""The bounce address book's use cases."""
