"""Tests that drive the screens of a community in Chromium."""
