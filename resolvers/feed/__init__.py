"""Use cases of posts, feeds, follows and notifications."""
