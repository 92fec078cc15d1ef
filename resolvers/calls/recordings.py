"""Recordings of calls, for operators."""

from collections.abc import Sequence

from strawberry import Parent

from resolvers.access import granted_roles
from resolvers.context import Info
from storage.calls.records import CallRecording, CallTask
from storage.identity.roles import Role


async def recording(root: Parent[CallTask], info: Info) -> CallRecording | None:
    """Returns the recording of the latest call that has one; None for viewers who are no operators."""
    return (await recordings([root], info))[0]


async def recordings(tasks: Sequence[CallTask], info: Info) -> list[CallRecording | None]:
    """Returns for each task the recording of its latest call that has one, or None."""
    viewer = info.context.viewer
    recorded = [each.key for each in tasks if each.recording_count]
    if viewer is None or Role.OPERATOR not in granted_roles(info.context) or not recorded:
        return [None for _ in tasks]
    found = await info.context.stores.call_recordings.of_tasks(viewer.organization_id, recorded)
    return [found.get(each.key) for each in tasks]
