"""Outbound calls: lists, jobs, tasks, limits, and numbers that must not be called (docs/semantics.md, section 6)."""
