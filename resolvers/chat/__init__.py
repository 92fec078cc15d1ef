"""Communities, topics, messages and reactions, as a client uses them."""
