"""Posts, feeds, fan-outs and notifications."""

import strawberry
from strawberry import ID

from storage.feed.records import FanOutState

strawberry.enum(FanOutState, description="How far a post is on its way into the followers' home feeds.")


@strawberry.type(description="Progress of one post's way into the followers' home feeds. Visible to its author.")
class FanOut:
    id: ID = strawberry.field(description="Opaque.")
    post_id: ID = strawberry.field(description="The post.")
    state: FanOutState = strawberry.field(description="COMPLETED when nobody is left to be reached.")
    total: int = strawberry.field(description="How many feeds it goes to; 0 where readers merge its author instead.")
    delivered: int = strawberry.field(description="How many feeds have it.")
    failed: int = strawberry.field(description="How many were given up after five tries.")
