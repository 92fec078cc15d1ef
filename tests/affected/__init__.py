"""Runs the tests that the changes of the working tree can affect: `make quick`, after `make record`.

pytest-testmon keeps the record: which test executes which functions. The modules here add what it lacks.
"""
