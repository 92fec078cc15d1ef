"""Stored documents of offline notifications. Instants are aware UTC datetimes by the database's clock."""

from datetime import datetime
from typing import NotRequired, TypedDict


class NotificationOwner(TypedDict):
    """The `_id` of documents of which a person has one."""

    o: str
    """Organization id."""

    u: str
    """User id."""


class QuietHoursDocument(TypedDict):
    """The local times between which a person gets no offline notification."""

    start: int
    """Minutes since local midnight, at which the quiet hours begin."""

    end: int
    """Minutes since local midnight, at which the quiet hours end. Before `start` for quiet hours over midnight."""

    zone: str
    """Name of the IANA time zone."""


class NotificationSettingsDocument(TypedDict):
    """A person's settings of offline notifications, in `notification_settings`. Deleted by an erasure.

    Absent fields, and documents that do not exist, have the defaults of `NotificationSettings`.
    """

    _id: NotificationOwner
    ways: NotRequired[dict[str, list[str]]]
    """By value of `NotificationCategory`, the values of `NotificationWay` that the person chose."""

    levels: NotRequired[dict[str, str]]
    """Values of `NotificationLevel` by key of the place, such as `TOPIC:<id>`; at most 200."""

    quiet: NotRequired[QuietHoursDocument | None]
    """None or absent without quiet hours."""

    digest: NotRequired[str]
    """Value of `DigestPeriod`."""

    language: NotRequired[str]
    """Value of `MailLanguage`, for the texts of pushes and digests."""

    at: datetime
    """When the settings were last changed."""


class PushSubscriptionDocument(TypedDict):
    """How to push to a browser, as the browser says."""

    url: str
    """Address of the browser at its push service."""

    key: bytes
    """The browser's public key: an uncompressed point of P-256."""

    auth: bytes
    """The browser's authentication secret of 16 bytes."""


class NotificationChannelDocument(TypedDict):
    """A device or a mail address that gets a person's notifications, in `notification_channels`.

    A device is deleted by the person, when its session has ended, or when the push service does not know it any more.
    It expires at `until`. A mail channel is deleted when the person ends digests. An erasure deletes both.
    """

    _id: str
    """SHA-256 in hexadecimal digits: of a device's address at the push service, or of the owner's ids for mail."""

    org: str
    """Organization id."""

    user: str
    """User id."""

    way: str
    """Value of `NotificationWay`."""

    at: datetime
    """When the channel was added."""

    until: NotRequired[datetime]
    """When a device expires unless its browser registers it again."""

    subscription: NotRequired[PushSubscriptionDocument]
    """Present for devices."""

    session: NotRequired[str]
    """Id of the session that registered the device; absent for a registration with a token."""

    period: NotRequired[str]
    """Value of `DigestPeriod`; present for mail. The address is read from the user when a digest is sent."""

    agent: NotRequired[str | None]
    """The browser's header User-Agent at the registration; None if there was none."""

    sent: int
    """Timestamp in microseconds. Notifications up to it were sent, or are not sent by this channel."""

    last: int
    """Timestamp in microseconds up to which notifications were found, at least `sent`."""

    topics: NotRequired[list[str]]
    """Conversations with new messages after `sent`, at most 20."""

    due: NotRequired[datetime]
    """When to send; absent if nothing is to be sent. Claiming the channel moves it into the future."""

    claim: NotRequired[str]
    """Random key of the last claim; absent after it was finished."""

    tries: NotRequired[int]
    """How often sending has failed since the last success."""

    not_before: NotRequired[datetime]
    """The earliest time of the next sending."""


class NotificationScanDocument(TypedDict):
    """Up to when workers have looked for notifications, in `notification_scans`. One document, never deleted."""

    _id: str
    """The value of `SCAN_ID`."""

    at: datetime
    """Events up to this time have been found."""
