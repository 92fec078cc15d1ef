"""The interface of every list that is ordered by time."""

import strawberry

from storage.timeline import Timestamp


@strawberry.interface(
    description=(
        "Every list that is ordered by time pages by the same rule: oldest only: ascending from oldest. latest only: "
        "descending from latest. Both: ascending from oldest. Neither: BAD_USER_INPUT. limit 1..999, default 50. "
        "inclusive: whether items at the bounds belong to the page."
    )
)
class Timeline:
    has_older: bool = strawberry.field(
        description="True when items older than this page exist (outside the given bounds too)."
    )
    has_newer: bool = strawberry.field(
        description="True when items newer than this page exist (outside the given bounds too)."
    )
    oldest: Timestamp | None = strawberry.field(description="Of the page's oldest item; null on an empty page.")
    newest: Timestamp | None = strawberry.field(description="Of the page's newest item; null on an empty page.")


class OfPage:
    """A page's GraphQL type is known by the field that returns it, so any record is of it."""

    @classmethod
    def is_type_of(cls, _record: object, _info: object) -> bool:
        """Always."""
        return True
