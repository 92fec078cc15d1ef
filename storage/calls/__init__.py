"""Outbound calls: lists, jobs, tasks, limits, and the numbers that must not be called (docs/semantics.md, 6)."""
