"""Tests of the use cases of administrators."""
