"""The registry of event kinds is complete: it lists every kind that is written, and no other."""

from storage.stores.event_kinds import JOB_EVENT_KINDS, OUTBOX_RELAYS, SUBJECT_READERS
from tests.storage.emitted_kinds import event_kinds, row_kinds, stream_kinds

WHERE = "in storage/stores/event_kinds.py"


def test_every_outbox_row_kind_has_a_relay() -> None:
    missing = row_kinds() - OUTBOX_RELAYS.keys()
    assert not missing, f"Name the relay of {sorted(missing)} {WHERE}: in JOB_EVENT_KINDS, or in OUTBOX_RELAYS."


def test_every_relay_has_outbox_rows() -> None:
    unused = OUTBOX_RELAYS.keys() - row_kinds()
    assert not unused, f"No change adds rows of {sorted(unused)}: add them, or remove their relays {WHERE}."


def test_every_job_event_kind_is_emitted() -> None:
    unused = {kind.name for kind in JOB_EVENT_KINDS} - event_kinds()
    assert not unused, f"No change emits {sorted(unused)}: emit them, or remove them from JOB_EVENT_KINDS {WHERE}."


def test_every_stream_kind_has_a_reader() -> None:
    assert stream_kinds() == SUBJECT_READERS.keys(), f"SUBJECT_READERS {WHERE} must list the kinds of streams."


def test_job_event_kinds_are_unique() -> None:
    names = [kind.name for kind in JOB_EVENT_KINDS]
    assert len(set(names)) == len(names)
