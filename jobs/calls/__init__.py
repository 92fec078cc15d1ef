"""Outbound calls of a worker: brokers, their pool, and polling for overdue calls."""
