"""Outbound call jobs: brokers, their pool, and polling for overdue reports."""
