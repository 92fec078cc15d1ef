"""Publishes scheduled posts: never before the due moment, and once to each target, even if a worker dies."""
