"""The bounce address book: ledger, aggregation, standings, and the migration from the legacy book."""
