"""Resolvers of scheduled posts, their publications and connected accounts."""
