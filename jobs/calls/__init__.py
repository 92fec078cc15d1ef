"""The calls area of a worker: brokers, the broker pool, and polling for overdue calls."""
