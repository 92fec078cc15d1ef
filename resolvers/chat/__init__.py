"""Resolvers of communities, topics, messages, reactions and stamps."""
