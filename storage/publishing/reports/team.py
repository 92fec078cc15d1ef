"""The team of an organization: its OPERATORs and ADMINs, who are notified of reported publications of others.

The commit of a report adds an outbox row to the organization's stream of jobs. Its relay adds a row for each person of
the team. The content of a notification is unique for its owner, so each person is notified once.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from storage.identity.documents import UserDocument
from storage.identity.roles import Role
from storage.identity.users import ROLE_LIFETIME_DAYS, ROLE_SEEN_EVERY
from storage.mongo import Document, Mongo, Session
from storage.notifications import notify
from storage.publishing.documents import (
    PROBLEMS,
    PUBLICATIONS,
    PublicationDocument,
    PublicationProblemsDocument,
)
from storage.publishing.events import KINDS_BY_REASON
from storage.publishing.reports.records import ReportReason, parse_report_ref
from storage.streams.changes import Batch
from storage.streams.documents import OutboxDocument
from storage.streams.log import jobs_stream_owner
from storage.streams.outbox import OutboxRelay

MAX_TEAM = 50
"""Number of people who are notified of a report: the first ones by handle."""

TEAM_ROLES = (Role.OPERATOR, Role.ADMIN)


async def find_team(
    mongo: Mongo, organization_id: str, now: datetime, session: Session | None = None
) -> list[UserDocument]:
    """Returns the people with the role OPERATOR or ADMIN, at most MAX_TEAM of them, by handle.

    A role that was not granted counts for 90 days after it was seen. Leaves out people without access, and services.
    """
    since = now - timedelta(days=ROLE_LIFETIME_DAYS) - ROLE_SEEN_EVERY
    seen: list[Document] = [{f"role_seen.{role.value}": {"$gt": since}} for role in TEAM_ROLES]
    query: Document = {
        "_id.org": organization_id,
        "roles": {"$in": [role.value for role in TEAM_ROLES]},
        **{field: {"$exists": False} for field in ("deactivated_at", "erasing_at", "service")},
        "$or": [{"roles_granted": True}, {"role_seen": {"$exists": False}}, *seen],
    }
    return await mongo.find("users", query, {"email": 1}, [("handle", 1)], MAX_TEAM, session=session)


class TeamNotificationRelay(OutboxRelay):
    """Notifies the team of reported publications. The author was notified in the commit of the report."""

    def __init__(self) -> None:
        self._team: list[str] = []
        self._publications: dict[str, PublicationDocument] = {}

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[OutboxDocument], batch: Batch) -> None:
        """Reads the team, the publications, and whether summaries of the organization are open."""
        organization_id = jobs_stream_owner(batch.stream)
        for problems in await mongo.find(PROBLEMS, {"_id": organization_id}, session=session):
            batch.add_loaded(PROBLEMS, problems)
        found = await find_team(mongo, organization_id, batch.at, session)
        self._team = [person["_id"]["id"] for person in found]
        ids = list({parse_report_ref(row["ref"])[0] for row in rows})
        publications = await mongo.find(PUBLICATIONS, {"_id": {"$in": ids}}, {"author": 1}, session=session)
        self._publications = {each["_id"]: each for each in publications}

    def relay(self, row: OutboxDocument, batch: Batch) -> float:
        """Notifies everybody of the team but the author, and opens the organization for daily summaries."""
        id_, reason, attempt = parse_report_ref(row["ref"])
        publication = self._publications.get(id_)
        if publication is None:
            return 0.0
        _count_report(batch)
        if reason is ReportReason.LATE:
            return 0.0
        organization_id, kind = jobs_stream_owner(batch.stream), KINDS_BY_REASON[reason]
        for user_id in self._team:
            if user_id != publication["author"]:
                notify(batch, organization_id, user_id, kind, publication_id=id_, attempt=attempt)
        return 0.0


def _count_report(batch: Batch) -> None:
    """Counts a report of the organization. The write conflicts with a worker that closes the summaries."""
    organization_id = jobs_stream_owner(batch.stream)
    stored: PublicationProblemsDocument | None = batch.get(PROBLEMS, organization_id)
    problems: PublicationProblemsDocument = (
        {"_id": organization_id, "since": batch.at, "reports": 0, "due": batch.at} if stored is None else stored
    )
    batch.put(PROBLEMS, {**problems, "reports": problems["reports"] + 1})
