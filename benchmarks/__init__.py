"""Benchmarks that compare the product with alternatives in one run."""
