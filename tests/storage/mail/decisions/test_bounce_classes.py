"""Each reason for which an address is blamed has a class, and stored codes lead to it."""

import pytest

from storage.mail import classifier
from storage.mail.classifier import RULES, ClassifierRule, DeliveryOutcome
from storage.mail.decisions.bounce_classes import CLASSES_BY_REASON, BounceClass, hard_bounce_class, soft_bounce_class
from storage.mail.records import IMPORTED_HARD_BOUNCE

BLAMING = {DeliveryOutcome.HARD, DeliveryOutcome.SOFT}


def all_rules() -> list[ClassifierRule]:
    """Returns the rules of the table, and those of texts."""
    of_texts = [each for each in vars(classifier).values() if isinstance(each, ClassifierRule)]
    by_topic = [*classifier._PERMANENT_RULES.values(), *classifier._TEMPORARY_RULES.values()]
    return [*RULES, *of_texts, *by_topic]


def test_each_reason_that_blames_an_address_has_a_class() -> None:
    assert {rule.reason for rule in all_rules() if rule.outcome in BLAMING} == CLASSES_BY_REASON.keys()


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("550 5.1.1", BounceClass.NO_MAILBOX),
        ("554 (no such mailbox)", BounceClass.NO_MAILBOX),
        ("550 5.0.0", BounceClass.NO_MAILBOX),
        ("550 5.1.2", BounceClass.NO_DOMAIN),
        ("556 (the domain accepts no mail)", BounceClass.NO_DOMAIN),
        ("550 5.1.6", BounceClass.MOVED),
        ("5.2.1", BounceClass.DISABLED),
        (IMPORTED_HARD_BOUNCE, BounceClass.IMPORTED_HARD),
    ],
)
def test_stored_code_of_a_hard_bounce_has_a_class(code: str, expected: BounceClass) -> None:
    assert hard_bounce_class(code) is expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("552", BounceClass.FULL),
        ("452 4.2.2 (mailbox full)", BounceClass.FULL),
        ("4.4.7", BounceClass.EXPIRED),
        ("450 4.2.1", BounceClass.TEMPORARY),
        ("450 4.1.5", BounceClass.TEMPORARY),
        ("", BounceClass.IMPORTED_SOFT),
    ],
)
def test_stored_code_of_a_soft_bounce_has_a_class(code: str, expected: BounceClass) -> None:
    assert soft_bounce_class(code) is expected
