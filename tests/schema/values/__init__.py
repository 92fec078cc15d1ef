"""Tests of `schema.values`."""
