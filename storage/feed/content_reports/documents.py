"""Stored documents of content reports. Instants are aware UTC datetimes by the database's clock."""

from datetime import datetime
from typing import NotRequired, TypedDict


class ContentReportDocument(TypedDict):
    """A report, in `content_reports`. Deleted at `expires_at`, and by an erasure of the reporter."""

    _id: str
    """Digest of organization, subject and reporter, so that a person reports a subject once."""

    org: str
    kind: str
    """Value of `ContentReportSubject`."""

    subject: str
    """Id of the message, post or person."""

    community: NotRequired[str]
    """Id of the message's community, whose moderators decide; absent if the ADMINs decide, as for posts and people."""

    private: NotRequired[bool]
    """True while the community is PRIVATE; absent otherwise. A relay updates it after a change of the visibility."""

    author: str
    """Id of the person who wrote the content, or who is the subject."""

    reporter: str
    category: str
    """Value of `ContentReportCategory`."""

    text: str
    """Text of the reporter; may be empty."""

    content: str
    """The text of the message or post, or the name of the person, when the report was made."""

    at: datetime
    state: str
    """Value of `ContentReportState`."""

    decision: NotRequired[str]
    """Value of `ContentReportDecision`; absent while the report is open, as are the fields from `note` to `failure`."""

    note: NotRequired[str]
    by: NotRequired[str]
    """Id of the moderator who decided."""

    by_admin: NotRequired[bool]
    """Whether the moderator decided as an ADMIN of the organization."""

    decided_at: NotRequired[datetime]
    until: NotRequired[datetime]
    """When the ban ends; absent for other decisions and for a ban without an end."""

    effect_due: NotRequired[datetime]
    """When another process may carry out the decision; absent if nothing is left to do."""

    failure: NotRequired[str]
    """Why the decision could not be carried out; absent if it could."""

    expires_at: datetime
