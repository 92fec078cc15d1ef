"""The command line, noroshi."""
