"""Redis: connections, the names of keys and channels, and the queues of jobs. Redis holds hints only."""
