"""Finds people who were active lately in the event log, and evaluates the rules for them.

The events exist anyway, so that neither posting nor reacting writes anything for the rules (ADR 74). Activity that is
missed here, for example while no worker runs, is found by the next walk. Events of conversations are left out, so that
the time of a grant tells nothing about them.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pymongo.asynchronous.collection import AsyncCollection

from storage.chat.changes import MESSAGES
from storage.chat.stamps.documents import StampCatalogueDocument, StampScanDocument
from storage.chat.stamps.packs import CATALOGUES
from storage.chat.stamps.rules import StampRuleKind
from storage.feed.stamp_rules.counts import OUTSIDE_CONVERSATIONS
from storage.feed.stamp_rules.evaluation import PACK_RULES, PackRules, StampRuleEvaluation, pack_rules
from storage.identity.records import stream_owner
from storage.ids import UserKey
from storage.locks import LockLost, Locks
from storage.mongo import Document, Mongo
from storage.notifications import NOTIFICATIONS, NotificationKind
from storage.streams.documents import EventDocument
from storage.streams.log import EventLog, parse_stream_name

SCANS = "stamp_scans"
SCAN_ID = "events"
LOCK = "stamp_rules"
PAGE_SIZE = 500
MAX_PAGES = 10
"""Number of pages of events that one sweep reads at most."""

MAX_PEOPLE = 200
"""A sweep reads no further page after it has evaluated so many people."""

MAX_LAG = timedelta(minutes=10)
"""Older events are skipped, for example those from before the first rule. The walk finds their people."""

_MESSAGE_EVENTS = {
    "MessagePosted": StampRuleKind.MESSAGES_POSTED,
    "ReactionsChanged": StampRuleKind.REACTIONS_RECEIVED,
}
"""The kind of rule that concerns the author of a message, by the event of the topic that refers to the message."""

Activity = dict[UserKey, set[StampRuleKind]]


@dataclass(frozen=True, slots=True)
class StampRuleActivity:
    """Reads the event log by time. One worker at a time does so; a second one would only repeat the work."""

    mongo: Mongo
    events: EventLog
    locks: Locks
    evaluation: StampRuleEvaluation

    async def sweep(self, delay_s: float) -> int:
        """Evaluates the people of events that are older than `delay_s`. Returns the number of new owners.

        After the delay, all commits of that time are visible. Without rules nothing is read.
        """
        rules = await self._rules()
        if not rules:
            return 0
        try:
            async with self.locks.held(LOCK) as lock:
                return 0 if lock is None else await self._sweep(rules, delay_s)
        except LockLost:
            return 0

    async def _rules(self) -> Mapping[str, PackRules]:
        """Returns the rules of each organization that has some."""
        found: list[StampCatalogueDocument] = await self.mongo.find(CATALOGUES, {"due": {"$exists": True}}, PACK_RULES)
        rules = {catalogue["_id"]: pack_rules(catalogue) for catalogue in found}
        return {organization_id: each for organization_id, each in rules.items() if each}

    async def _sweep(self, rules: Mapping[str, PackRules], delay_s: float) -> int:
        until = await self.mongo.now() - timedelta(seconds=delay_s)
        position, granted, evaluated = max(await self._position() or until, until - MAX_LAG), 0, 0
        for _ in range(MAX_PAGES):
            events, end = await self.events.page_by_time(position, until, PAGE_SIZE)
            activity = await self._activity(events, rules)
            granted += await self._evaluate(activity, rules)
            evaluated += len(activity)
            # After the evaluation, so that the next worker repeats the page of a worker that was killed.
            await self._scans.update_one({"_id": SCAN_ID}, {"$set": {"at": end}}, upsert=True)
            position = end
            if end >= until or evaluated >= MAX_PEOPLE:
                break
        return granted

    async def _position(self) -> datetime | None:
        found: list[StampScanDocument] = await self.mongo.find(SCANS, {"_id": SCAN_ID}, limit=1)
        return found[0]["at"] if found else None

    async def _activity(self, events: Sequence[EventDocument], rules: Mapping[str, PackRules]) -> Activity:
        """Returns the people whom the events concern, with the kinds of rules. People without rules are left out."""
        activity: Activity = defaultdict(set)
        messages: defaultdict[tuple[str, int], set[StampRuleKind]] = defaultdict(set)
        notifications: list[Document] = []
        for event in events:
            stream, kind = parse_stream_name(event["_id"]["s"]), event["kind"]
            if (stream.kind, kind) == ("author", "PostArrived"):
                activity[UserKey(*stream_owner(stream))].add(StampRuleKind.POSTS_CREATED)
            elif (stream.kind, kind) == ("user", "NotificationArrived"):
                owner = UserKey(*stream_owner(stream))
                notifications.append({"o": owner.organization_id, "u": owner.user_id, "ts": event["ref"]})
            elif stream.kind == "topic" and (message_rule := _MESSAGE_EVENTS.get(kind)) is not None:
                messages[stream.id, event["ref"]].add(message_rule)
        await self._add_authors(activity, messages, rules)
        await self._add_authors_of_posts(activity, notifications)
        used = {id_: {rule.kind for rule in own.values()} for id_, own in rules.items()}
        concerned = {person: kinds & used.get(person.organization_id, set()) for person, kinds in activity.items()}
        return {person: kinds for person, kinds in concerned.items() if kinds}

    async def _add_authors(
        self,
        activity: Activity,
        messages: Mapping[tuple[str, int], set[StampRuleKind]],
        rules: Mapping[str, PackRules],
    ) -> None:
        """Adds the authors of messages in topics that count, of the organizations that have rules."""
        topic_ids = {topic_id for topic_id, _ in messages}
        query = {"_id": {"$in": list(topic_ids)}, **OUTSIDE_CONVERSATIONS}
        topics = await self.mongo.find("topics", query, {"org": 1}) if topic_ids else []
        organizations = {topic["_id"]: topic["org"] for topic in topics if topic["org"] in rules}
        ids = [{"t": topic_id, "ts": timestamp} for topic_id, timestamp in messages if topic_id in organizations]
        for message in await self.mongo.find(MESSAGES, {"_id": {"$in": ids}}, {"author": 1}) if ids else []:
            topic_id, timestamp = message["_id"]["t"], message["_id"]["ts"]
            author = UserKey(organizations[topic_id], message["author"])
            activity.setdefault(author, set()).update(messages[topic_id, timestamp])

    async def _add_authors_of_posts(self, activity: Activity, ids: Sequence[Document]) -> None:
        """Adds the owners of those of the notifications that are of a reaction to a post."""
        query = {"_id": {"$in": ids}, "kind": NotificationKind.REACTION.value, "post": {"$ne": None}}
        for each in await self.mongo.find(NOTIFICATIONS, query, {"_id": 1}) if ids else []:
            owner = UserKey(each["_id"]["o"], each["_id"]["u"])
            activity.setdefault(owner, set()).add(StampRuleKind.REACTIONS_RECEIVED)

    async def _evaluate(self, activity: Activity, rules: Mapping[str, PackRules]) -> int:
        by_organization: defaultdict[str, dict[str, set[StampRuleKind]]] = defaultdict(dict)
        for person, kinds in activity.items():
            by_organization[person.organization_id][person.user_id] = kinds
        return sum([await self.evaluation.evaluate(id_, rules[id_], people) for id_, people in by_organization.items()])

    @property
    def _scans(self) -> AsyncCollection[StampScanDocument]:
        return self.mongo[SCANS]
