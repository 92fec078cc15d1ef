"""Reports of messages, posts and people to moderators, and what moderators decided."""
