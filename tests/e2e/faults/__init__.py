"""Tests that kill and stop the processes of a product of their own."""
