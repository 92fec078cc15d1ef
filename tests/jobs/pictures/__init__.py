"""Tests of the picture decoder."""
