"""The bounce address book: ledger, folds, standings, and the migration from an older book."""
