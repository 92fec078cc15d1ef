"""Social networks behind one protocol, one class a network."""
