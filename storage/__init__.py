"""State and its invariants: records, stores, transactions, the event log, locks and limits."""
