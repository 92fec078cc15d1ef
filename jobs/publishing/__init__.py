"""Publishes scheduled posts: never before the due moment, once to each target, and also after a worker died."""
