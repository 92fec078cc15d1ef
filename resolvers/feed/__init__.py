"""Posts, feeds, follows and notifications, as a client uses them."""
