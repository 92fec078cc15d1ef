"""The command line `noroshi`."""
