"""Events keep the index of their item."""

from jobs.mail.inlets.read_events import ReadEvents
from tests.storage.mail.events import hard


def test_items_have_events_or_reasons() -> None:
    read, event = ReadEvents(), hard()
    read.add(3, event)
    read.add(3, event)
    read.ignore()
    read.reject(4, "line: expected a line.")
    assert (read.events, read.indexes, read.ignored) == ([event, event], [3, 3], 1)
    assert [(each.index, each.event_id) for each in read.rejected] == [(4, "")]
