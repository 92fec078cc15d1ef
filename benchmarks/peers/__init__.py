"""Servers of other libraries that answer the timeline's requests with the product's bytes, and their comparison."""
