"""What is fast, measured side by side with something else in one run."""
