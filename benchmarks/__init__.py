"""Benchmarks of the product. Most of them compare it with alternatives in one run."""
