"""Posts, home feeds and their fan-out, follows, notifications: the records, the reads, and the changes."""
