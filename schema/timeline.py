"""The GraphQL interface of lists that are ordered by time, and the form in which Relay pages them."""

from typing import Any, Generic, TypeVar

import strawberry
from strawberry import UNSET
from strawberry.annotation import StrawberryAnnotation
from strawberry.extensions.field_extension import AsyncExtensionResolver, FieldExtension
from strawberry.types.arguments import StrawberryArgument
from strawberry.types.field import StrawberryField

from resolvers.arguments import bounds_of_connection
from resolvers.context import Info
from storage.timeline import Timestamp

NodeType = TypeVar("NodeType")

CONNECTION_ARGUMENTS = {
    "first": (int, "Number of items from the newest, or from `after`, towards older ones: 1 to 999."),
    "after": (Timestamp, "With `first`: the `endCursor` of the page before. Omitted or null: the newest items."),
    "last": (int, "Number of items from the oldest, or from `before`, towards newer ones: 1 to 999."),
    "before": (Timestamp, "With `last`: the `startCursor` of the page after. Omitted or null: the oldest items."),
}
"""The arguments of Relay's connections, with their types and descriptions."""


@strawberry.interface(
    description=(
        "A page of a list that is ordered by time. All such lists have the same arguments. With `oldest`, the page "
        "starts at `oldest` and is in ascending order. With `latest` alone, it starts at `latest` and is in descending "
        "order. Without both: BAD_USER_INPUT. `limit` is 1 to 999, 50 by default. `inclusive` says whether items "
        "exactly at a bound belong to the page. Lists with `edges` can be paged as Relay's connections instead: by "
        "`first` and `after`, or by `last` and `before`, which replace the other arguments."
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


@strawberry.type(description="An item of a page, as Relay reads it.")
class Edge(Generic[NodeType]):
    node: NodeType = strawberry.field(description="The item.")
    cursor: Timestamp = strawberry.field(description="Position of the item: its timestamp in this list.")


@strawberry.type(description="The ends of a page, as Relay reads them. The first edge is the newest item of the page.")
class PageInfo:
    has_next_page: bool = strawberry.field(description="Whether older items exist; same as `hasOlder`.")
    has_previous_page: bool = strawberry.field(description="Whether newer items exist; same as `hasNewer`.")
    start_cursor: Timestamp | None = strawberry.field(
        description="Cursor of the newest item, for `before`; null if the page is empty."
    )
    end_cursor: Timestamp | None = strawberry.field(
        description="Cursor of the oldest item, for `after`; null if the page is empty."
    )


@strawberry.type
class ConnectionPage(PageMixin):
    """The part of a page that Relay reads, without its edges."""

    page_info: PageInfo = strawberry.field(description="The ends of `edges`.")


class ConnectionArguments(FieldExtension):
    """Adds the arguments of Relay's connections to a timeline, in place of its own four."""

    def apply(self, field: StrawberryField) -> None:
        """Adds the arguments, once."""
        names = {argument.python_name for argument in field.arguments}
        missing = {name: each for name, each in CONNECTION_ARGUMENTS.items() if name not in names}
        field.arguments = [*field.arguments, *(_argument(name, *each) for name, each in missing.items())]

    async def resolve_async(self, next_: AsyncExtensionResolver, source: Any, info: Info, **arguments: Any) -> Any:
        """Resolves the timeline with the bounds that the arguments describe. Raises: BadUserInput."""
        return await next_(source, info, **bounds_of_connection(arguments))


def _argument(name: str, type_: Any, description: str) -> StrawberryArgument:
    return StrawberryArgument(
        python_name=name,
        graphql_name=None,
        type_annotation=StrawberryAnnotation(type_ | None),
        description=description,
        default=UNSET,
    )
