"""The fault laboratory: three hosts in network namespaces, workloads, faults, and checkers of the recorded histories.

docs/laboratory.md explains how to run it and how to read its table.
"""
