"""Tests of the workers of webhooks."""
