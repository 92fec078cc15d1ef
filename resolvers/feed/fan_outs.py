"""Progress of a post's way into the followers' feeds: visible to its author."""

from dataclasses import dataclass

from strawberry import Parent

from resolvers.access import member
from resolvers.context import Context, Info
from resolvers.events import Event, JobEventView
from storage.errors import Forbidden, NotFound
from storage.feed.records import FanOut, Post
from storage.identity.records import User
from storage.references import post_key


@dataclass(frozen=True, slots=True)
class FanOutEvent(Event):
    """A fan-out moved on; `kind` is the event's GraphQL type."""

    kind: str
    fan_out: FanOut


JOB_EVENTS = {
    "FanOutChanged": JobEventView(
        record=FanOutEvent,
        may_see=lambda viewer, _roles, fan_out: fan_out.author_id == viewer.id,
        job_ids=lambda fan_out: [fan_out.post_id],
    ),
}


async def is_job(context: Context, viewer: User, job_id: str) -> bool:
    """Whether the id is a post's. Raises: Forbidden for somebody else's."""
    try:
        fan_out = await context.stores.fan_outs.find(post_key(viewer.organization_id, job_id))
    except NotFound:
        return False
    if fan_out is not None and fan_out.author_id != viewer.id:
        raise Forbidden("A fan-out is visible to the post's author.")
    return fan_out is not None


async def fan_out(root: Parent[Post], info: Info) -> FanOut | None:
    """The post's fan-out; None for everybody but its author."""
    viewer = member(info)
    return await info.context.stores.fan_outs.find(root.key) if root.author_id == viewer.id else None
