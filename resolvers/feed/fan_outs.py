"""Fan-outs and their events. Only the post's author may see a fan-out."""

from collections.abc import Sequence
from dataclasses import dataclass

from strawberry import Parent

from resolvers.access import require_member
from resolvers.context import Context, Info
from resolvers.events import Event, JobEventView
from storage.errors import Forbidden, NotFound
from storage.feed.records import FanOut, Post
from storage.identity.records import User
from storage.ids import post_key


@dataclass(frozen=True, slots=True)
class FanOutEvent(Event):
    """A fan-out progressed. `kind` is the event's GraphQL type."""

    kind: str
    fan_out: FanOut


JOB_EVENT_VIEWS = {
    "FanOutChanged": JobEventView(
        record=FanOutEvent,
        may_see=lambda viewer, _roles, fan_out: fan_out.author_id == viewer.id,
        job_ids=lambda fan_out: [fan_out.post_id],
    ),
}


async def is_visible_job(context: Context, viewer: User, job_id: str) -> bool:
    """Returns whether the id belongs to a fan-out. Raises: Forbidden for a fan-out of another author."""
    try:
        fan_out = await context.stores.fan_outs.find(post_key(viewer.organization_id, job_id))
    except NotFound:
        return False
    if fan_out is not None and fan_out.author_id != viewer.id:
        raise Forbidden("Only the author of the post may see its fan-out.")
    return fan_out is not None


async def fan_out(root: Parent[Post], info: Info) -> FanOut | None:
    """Returns the post's fan-out, or None when the viewer is not its author."""
    return (await fan_outs([root], info))[0]


async def fan_outs(posts: Sequence[Post], info: Info) -> list[FanOut | None]:
    """Returns the fan-out of each post, or None when the viewer is not its author."""
    viewer = require_member(info)
    own = [each.key for each in posts if each.author_id == viewer.id]
    found = await info.context.stores.fan_outs.find_many(own)
    return [found.get(each.key) if each.author_id == viewer.id else None for each in posts]
