"""Upgrades of stored data: the data version, the check at start, and `noroshi migrate` (ADR 55)."""
