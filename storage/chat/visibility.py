"""Visibility of communities: who sees that a community exists, and who sees its topics and members."""

from enum import Enum


class CommunityVisibility(Enum):
    """The visibility of a community: who sees it, and how people join it."""

    PUBLIC = "PUBLIC"
    LISTED = "LISTED"
    PRIVATE = "PRIVATE"
