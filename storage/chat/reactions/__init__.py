"""Reactions to messages: documents, changes, and reads as a viewer sees them."""
