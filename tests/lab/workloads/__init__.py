"""Workloads: the actions of each area's users during a run, and the final read of their data."""
