"""The values of the schema: descriptions of enum values, and explanations of refused input values."""
