"""Stored documents of operators' decisions about mail."""

from datetime import datetime
from typing import Any, NotRequired, TypedDict


class PolicyFields(TypedDict):
    """A policy."""

    treatments: dict[str, str]
    """`BounceTreatment` of each `BounceClass`."""

    hard_bounces: int
    """How many hard bounces since the latest delivery block."""

    soft_bounce_days: int
    """On how many UTC days soft bounces since the latest delivery block."""

    soft_window_days: int | None
    """How many of the last UTC days count; None for all."""

    soft_block_days: int | None
    """How many days after its last soft bounce a block ends; None if it does not end by itself."""

    complaints_block: bool
    """Whether a complaint blocks."""

    keep_addresses: NotRequired[bool]
    """True if addresses are kept readable; absent otherwise."""


class MailAuditDocument(TypedDict):
    """A change by an operator, in `mail_audit`. Never deleted."""

    _id: NotRequired[Any]
    """Generated; absent until the change is stored."""

    org: str
    """Organization id."""

    subject: bytes | str
    """Keyed hash of the address, or the domain; empty for the policy."""

    action: str
    """`unblock`, `block`, `allow`, `leave to the rule`, or `set policy`."""

    by: str
    """User id of the operator."""

    reason: str
    """Reason that the operator gave."""

    at: datetime
    """When the change was made, by the clock of the database."""

    version: NotRequired[int]
    """Version of the policy, from 1, unique in the organization; absent for other changes."""

    policy: NotRequired[PolicyFields]
    """The policy; absent for other changes."""

    forget_until: NotRequired[datetime]
    """Until when readable addresses are looked for and removed; only in a policy that ends keeping them."""
