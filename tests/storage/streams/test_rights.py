"""Every change declares the rights that it needs. The sequencer checks them in the transaction that commits it."""

import inspect
import pkgutil
from importlib import import_module
from typing import Any

import pytest

import storage
from storage.errors import Forbidden
from storage.streams.changes import Batch, Change, Right, SystemChange
from tests.storage.topic_scenario import TopicScenario

pytestmark = pytest.mark.anyio

NO_RIGHT_NEEDED = {"LeaveCommunity", "LeaveConversation", "RemovePostReaction", "Unfollow", "UnfollowThread"}
"""Changes by which a person gives something up, which even a person without any right may do."""

SYSTEM_CHANGES = {
    # Workers that call.
    "FailCall", "MarkCallUnknown", "RefreshJobState", "ReportCall", "RequeueCall", "StartCall", "TakeOver",
    # Workers that publish.
    "BeginAttempt", "BeginReconciliation", "HoldForAttention", "HoldScheduledPost", "MarkFailed", "MarkPublished",
    "MarkUnknown", "PublishPost", "ResumePublication", "ScheduleRetry", "StoreUploadResult",
    "StoreUploadResultAndBegin",
    # Erasures and retention rules.
    "EraseMessage", "ErasePost", "EraseReaction", "EraseScheduledPost", "RemoveErasedMember",
    # Link previews, and relays.
    "RelayRows", "SetPostPreview", "SetPreview",
}  # fmt: skip


def concrete_changes() -> set[type[Change[Any]]]:
    """Returns the changes of all modules of `storage` that can be committed."""
    for module in pkgutil.walk_packages(storage.__path__, "storage."):
        import_module(module.name)
    found, waiting = set[type[Change[Any]]](), [Change]
    while waiting:
        for each in waiting.pop().__subclasses__():
            waiting.append(each)
            # `dataclass(slots=True)` replaces each class by another one, which its module then names.
            if getattr(inspect.getmodule(each), each.__name__, None) is each and not inspect.isabstract(each):
                found.add(each)
    return {each for each in found if each.__module__.startswith("storage.")}


def test_only_named_changes_need_no_right() -> None:
    changes = {each.__name__: each for each in concrete_changes()}
    assert len(changes) > 70
    system = {name for name, each in changes.items() if issubclass(each, SystemChange)}
    assert system - {"SystemChange", "ScheduledPostChange"} == SYSTEM_CHANGES
    without = {name for name, each in changes.items() if inspect.getsource(each.rights).rstrip().endswith("return ()")}
    assert without - system == NO_RIGHT_NEEDED


def test_change_without_declared_rights_cannot_be_created() -> None:
    class UndeclaredChange(Change[int]):
        def plan(self, batch: Batch) -> int:
            return 1

    with pytest.raises(TypeError, match="rights"):
        UndeclaredChange()  # type: ignore[abstract]


class Refused(Right):
    def check(self, batch: Batch) -> None:
        raise Forbidden("no")


class ChangeWithRight(Change[int]):
    """Emits an event, if its right allows it."""

    def __init__(self, *rights: Right) -> None:
        self._rights = rights

    def rights(self) -> tuple[Right, ...]:
        return self._rights

    def plan(self, batch: Batch) -> int:
        batch.emit("MessagePosted", batch.last_timestamp)
        return 1


async def test_refused_change_fails_alone_and_emits_nothing(scenario: TopicScenario) -> None:
    sequencer, stream = scenario.stores.sequencer, scenario.stream
    with pytest.raises(Forbidden):
        await sequencer.commit(stream, ChangeWithRight(Refused()))
    assert await sequencer.commit(stream, ChangeWithRight()) == 1
    events = await scenario.stores.mongo["events"].find({"_id.s": stream.name}).to_list(None)
    assert [event["kind"] for event in events] == ["MessagePosted"]
