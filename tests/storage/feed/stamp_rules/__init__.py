"""Tests of the rules by which people earn packs of stamps."""
