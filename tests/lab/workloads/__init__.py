"""Workloads: what users of each area do during a run, and the final read of what they left."""
