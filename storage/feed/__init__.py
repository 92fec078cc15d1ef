"""Posts, home feeds, fan-outs, follows and content reports: records, reads and changes."""
