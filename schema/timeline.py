"""The GraphQL interface of lists that are ordered by time."""

import strawberry

from storage.timeline import Timestamp


@strawberry.interface(
    description=(
        "A page of a list that is ordered by time. All such lists have the same arguments. With `oldest`, the page "
        "starts at `oldest` and is in ascending order. With `latest` alone, it starts at `latest` and is in descending "
        "order. Without both: BAD_USER_INPUT. `limit` is 1 to 999, 50 by default. `inclusive` says whether items "
        "exactly at a bound belong to the page."
    )
)
class Timeline:
    has_older: bool = strawberry.field(
        description="Whether items older than this page exist, inside or outside `oldest` and `latest`."
    )
    has_newer: bool = strawberry.field(
        description="Whether items newer than this page exist, inside or outside `oldest` and `latest`."
    )
    oldest: Timestamp | None = strawberry.field(
        description="Timestamp of the page's oldest item; null if the page is empty."
    )
    newest: Timestamp | None = strawberry.field(
        description="Timestamp of the page's newest item; null if the page is empty."
    )


class PageMixin:
    """Accepts every record as a page, since the field that returns the page determines its GraphQL type."""

    @classmethod
    def is_type_of(cls, _record: object, _info: object) -> bool:
        """Returns True."""
        return True
