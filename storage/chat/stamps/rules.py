"""The people who may use a pack of stamps: everybody, those who earned it by a rule, or those to whom it was given."""

from dataclasses import dataclass
from enum import Enum

from storage.chat.stamps.documents import StampPackDocument


class StampPackAvailability(Enum):
    """The people who may use the stamps of a pack. The value is stored."""

    EVERYONE = "EVERYONE"
    EARNED = "EARNED"
    GIVEN = "GIVEN"


class StampRuleKind(Enum):
    """The acts that a rule counts. The value is stored."""

    MESSAGES_POSTED = "MESSAGES_POSTED"
    POSTS_CREATED = "POSTS_CREATED"
    REACTIONS_RECEIVED = "REACTIONS_RECEIVED"
    MEMBER_DAYS = "MEMBER_DAYS"


@dataclass(frozen=True, slots=True)
class StampRule:
    """A rule by which people earn a pack: workers grant it to those whose count reaches the threshold."""

    kind: StampRuleKind
    threshold: int


def stored_availability(pack: StampPackDocument) -> StampPackAvailability:
    """Returns who may use a stored pack."""
    return StampPackAvailability(pack.get("availability", StampPackAvailability.EVERYONE.value))


def stored_rule(pack: StampPackDocument) -> StampRule | None:
    """Returns the rule of a stored pack; None unless it is EARNED."""
    rule = pack.get("rule")
    return None if rule is None else StampRule(StampRuleKind(rule["kind"]), rule["threshold"])
