"""Packs that were stored before there were rules are for everyone."""

from datetime import UTC, datetime

from storage.chat.stamps.documents import StampPackDocument
from storage.chat.stamps.rules import (
    StampPackAvailability,
    StampRule,
    StampRuleKind,
    stored_availability,
    stored_rule,
)


def test_pack_without_availability_is_for_everyone() -> None:
    pack: StampPackDocument = {"id": "p", "name": "Harbour", "at": datetime.now(UTC), "stamps": []}
    assert (stored_availability(pack), stored_rule(pack)) == (StampPackAvailability.EVERYONE, None)
    pack |= {"availability": "EARNED", "rule": {"kind": "MEMBER_DAYS", "threshold": 365}}
    assert stored_availability(pack) is StampPackAvailability.EARNED
    assert stored_rule(pack) == StampRule(StampRuleKind.MEMBER_DAYS, 365)
