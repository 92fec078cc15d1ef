"""The steps that bring the data of an older release to this one, in order (docs/adding-a-migration.md)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from storage.migrations.address_faults import add_address_faults
from storage.migrations.conversation_roots import add_conversation_roots
from storage.migrations.reaction_forms import join_reaction_forms
from storage.migrations.search_terms import add_name_ends, add_search_terms, add_topic_terms
from storage.migrations.stored_names import drop_existing_indexes, rename_stored_fields
from storage.mongo import Document, Mongo

BATCH = 1000

StepWork = Callable[[Mongo], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class MigrationStep:
    """One change of the data. It is idempotent, and may run while processes of the previous release serve.

    A step whose `compatible_version` is its own version is an exception: these processes must be stopped first.
    """

    version: int
    """Version of the data after the step."""

    title: str
    work: StepWork
    compatible_version: int = 0
    """The oldest DATA_VERSION of code that works with the data after the step."""

    @property
    def stops_older_code(self) -> bool:
        """Whether no earlier code works with the data after the step."""
        return self.compatible_version == self.version


def drop_indexes(collection: str, *names: str) -> StepWork:
    """Returns a function that drops indexes which no release uses any more."""

    async def work(mongo: Mongo) -> None:
        await drop_existing_indexes(mongo, collection, names)

    return work


async def appoint_owners(mongo: Mongo) -> None:
    """Gives each community without an owner one: its earliest member. Handles one community at a time."""
    async for community in mongo["communities"].find({}, {"_id": 1}):
        members = {"community": community["_id"]}
        if await mongo["memberships"].find_one({**members, "role": "OWNER"}, {"_id": 1}) is None:
            earliest = await mongo["memberships"].find_one(members, {"_id": 1}, sort=[("at", 1), ("_id", 1)])
            if earliest is not None:
                await mongo["memberships"].update_one(earliest, {"$set": {"role": "OWNER"}})


async def name_communities_of_notifications(mongo: Mongo) -> None:
    """Adds the community's id to each notification of a message, so that muting the community hides it."""
    missing: Document = {"topic": {"$ne": None}, "community": {"$exists": False}}
    after_batch: Document = {}
    while batch := await mongo.find("notifications", {**after_batch, **missing}, {"topic": 1}, [("_id", 1)], BATCH):
        topics = await mongo.find("topics", {"_id": {"$in": [each["topic"] for each in batch]}}, {"community": 1})
        communities = {topic["_id"]: topic["community"] for topic in topics}
        for topic_id, community_id in communities.items():
            ids = [each["_id"] for each in batch if each["topic"] == topic_id]
            await mongo["notifications"].update_many({"_id": {"$in": ids}}, {"$set": {"community": community_id}})
        after_batch = {"_id": {"$gt": batch[-1]["_id"]}}


async def mark_hidden_reports_and_lost_owners(mongo: Mongo) -> None:
    """Marks reports of PRIVATE communities, and communities with members but without an owner."""
    after: Document = {}
    while batch := await mongo.find(
        "communities", after, {"org": 1, "visibility": 1, "members": 1}, [("_id", 1)], BATCH
    ):
        for private in [each for each in batch if each.get("visibility") == "PRIVATE"]:
            reports = {"org": private["org"], "community": private["_id"]}
            await mongo["content_reports"].update_many(reports, {"$set": {"private": True}})
        peopled = {each["_id"] for each in batch if each.get("members")}
        owners: Document = {"community": {"$in": sorted(peopled)}, "role": "OWNER"}
        owned = {each["community"] for each in await mongo.find("memberships", owners, {"_id": 0, "community": 1})}
        lost: Document = {"_id": {"$in": sorted(peopled - owned)}}
        await mongo["communities"].update_many(lost, {"$set": {"owner_erased": True}})
        after = {"_id": {"$gt": batch[-1]["_id"]}}


STEPS = (
    MigrationStep(1, "drop the unused index org_1 of mail_domains", drop_indexes("mail_domains", "org_1")),
    MigrationStep(2, "make the earliest member of each community its owner", appoint_owners),
    MigrationStep(3, "write the community into notifications of messages", name_communities_of_notifications),
    MigrationStep(4, "write the terms by which messages and posts are found", add_search_terms),
    MigrationStep(5, "write the terms by which topics are found", add_topic_terms),
    MigrationStep(6, "write the characters by which names in scripts without spaces are found", add_name_ends),
    MigrationStep(7, "join reactions with different forms of one emoji", join_reaction_forms),
    MigrationStep(
        8, "mark reports of private communities, and communities without owner", mark_hidden_reports_and_lost_owners
    ),
    MigrationStep(
        9, "rename stored fields; stop all earlier processes first", rename_stored_fields, compatible_version=9
    ),
    MigrationStep(
        10, "write the first post of the conversation into replies", add_conversation_roots, compatible_version=9
    ),
    MigrationStep(11, "write what mail policies apply to", add_address_faults, compatible_version=9),
)
DATA_VERSION = STEPS[-1].version
"""Version of the data that this code writes."""
