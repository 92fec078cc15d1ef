"""Conversations: direct messages between two people or in a group, as topics without a community."""
