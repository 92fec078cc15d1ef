"""Social networks behind one protocol, one class per network."""
