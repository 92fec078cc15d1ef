"""Types and root fields of posts, home feeds, notifications and mutes."""
