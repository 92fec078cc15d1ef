"""Use cases as a client sees them. A resolver validates, authorizes, calls storage and returns records."""
