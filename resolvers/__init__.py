"""Use cases as a client sees them: validate, authorize, call storage, return records."""
