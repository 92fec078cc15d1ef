"""Tests that drive the screens of accounts and administration in Chromium."""
