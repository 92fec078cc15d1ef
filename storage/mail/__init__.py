"""The bounce address book: ledger, aggregation, standings, and the migration from an older book."""
