"""Reports of messages, posts and people to moderators, and the moderators' decisions."""
