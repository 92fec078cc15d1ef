"""Communities and their memberships."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from pymongo.asynchronous.collection import AsyncCollection

from storage.chat.conversations.records import ConversationState
from storage.chat.documents import CommunityDocument, MembershipDocument
from storage.chat.memberships import (
    COMMUNITIES,
    MEMBERSHIPS,
    JoinCommunity,
    LeaveCommunity,
    community_stream,
    new_membership,
    stored_visibility,
)
from storage.chat.records import Community, CommunityVisibility
from storage.chat.roles import CommunityRole, active_with_role, list_without_owner, lock_founder
from storage.errors import NotFound
from storage.idempotency import DuplicateRequest, IdempotencyKey, store_key
from storage.identity.records import User, avatar_path, banner_path
from storage.ids import UserKey, new_id
from storage.mongo import Document, Mongo, Session
from storage.mongo.batch_loader import MAX_KEYS, BatchLoader
from storage.mongo.text_index.names import fold_for_comparison
from storage.streams.changes import Change
from storage.streams.sequencer import Sequencer

_Pair = tuple[str, str]
"""Community id and user id."""

FindJoined = Callable[[Collection[str]], Awaitable[set[str]]]
"""Returns those of the communities of which a user is a member."""


@dataclass(frozen=True, slots=True)
class NewCommunity:
    """The validated content of a community to create."""

    organization_id: str
    name: str
    description: str
    visibility: CommunityVisibility = CommunityVisibility.PUBLIC


class CommunityStore:
    """Reads and changes communities and memberships.

    The commit that adds or removes a membership also updates the community's number of members.
    """

    def __init__(self, mongo: Mongo, sequencer: Sequencer) -> None:
        self._mongo = mongo
        self._sequencer = sequencer
        self._communities: AsyncCollection[CommunityDocument] = mongo[COMMUNITIES]
        self._memberships: AsyncCollection[MembershipDocument] = mongo[MEMBERSHIPS]
        self._memberships_by_pair: BatchLoader[_Pair, bool] = BatchLoader(self._load_memberships)
        self._by_id: BatchLoader[str, Community] = BatchLoader(self._load)

    async def create(self, new: NewCommunity, founder: User, key: IdempotencyKey | None) -> Community:
        """Creates a community with its founder as the first member and owner.

        A repeated key returns the community that it created. Raises: Conflict for a key reused with other arguments,
        and for a founder who owns too many communities; Forbidden for a deactivated founder.
        """
        id_ = new_id()
        now = await self._mongo.now()

        async def work(session: Session) -> str:
            try:
                await store_key(self._mongo, key, id_, session)
            except DuplicateRequest as duplicate:
                # The commit of the request that stored the key may not have reached a majority yet. Committing this
                # transaction waits until it has, although nothing is written here.
                return duplicate.result_id
            document: CommunityDocument = {
                "_id": id_,
                "org": new.organization_id,
                "name": new.name,
                "sort": fold_for_comparison(new.name),
                "description": new.description,
                "members": 1,
                "at": now,
            }
            if new.visibility is not CommunityVisibility.PUBLIC:
                document["visibility"] = new.visibility.value
            owner = await lock_founder(self._mongo, founder, session)
            await self._communities.insert_one(document, session=session)
            membership = new_membership(id_, owner, now, CommunityRole.OWNER)
            await self._memberships.insert_one(membership, session=session)
            return id_

        return await self.get(new.organization_id, await self._mongo.transact(work))

    async def find(self, organization_id: str, id_: str) -> Community | None:
        """Returns the organization's community of that id, or None."""
        community = await self._by_id.get(id_)
        return community if community is not None and community.organization_id == organization_id else None

    async def get(self, organization_id: str, id_: str) -> Community:
        """Returns the organization's community of that id. Raises: NotFound."""
        community = await self.find(organization_id, id_)
        if community is None:
            raise NotFound("community", id_)
        return community

    async def list_communities(
        self,
        organization_id: str,
        user_id: str,
        joined: bool | None,
        after: str | None,
        limit: int,
        include_archived: bool = False,
    ) -> list[Community]:
        """Returns communities, ordered by name: those after the community `after`, or from the first if it is None.

        Leaves out private communities that the user has not joined. `joined` selects communities that the user has
        joined (True) or has not joined (False). Raises: NotFound if `after` does not exist for the user.
        """
        joined_by = {"org": organization_id, "user": user_id, "conversation": {"$exists": False}}
        if joined and after is None:
            return await self._list_joined(joined_by, limit, include_archived)
        own = [row["community"] for row in await self._mongo.find(MEMBERSHIPS, joined_by, {"_id": 0, "community": 1})]
        is_visible: Document = {"$or": [{"visibility": {"$ne": "PRIVATE"}}, {"_id": {"$in": own}}]}
        conditions: list[Document] = [{"org": organization_id}, is_visible]
        if not include_archived:
            conditions.append({"archived_at": None})
        if joined is not None:
            conditions.append({"_id": {"$in" if joined else "$nin": own}})
        if after is not None:
            last = await self._communities.find_one({"_id": after, "org": organization_id, **is_visible})
            if last is None:
                raise NotFound("community", after)
            conditions.append({"$or": [{"sort": {"$gt": last["sort"]}}, {"sort": last["sort"], "_id": {"$gt": after}}]})
        by_name = [("sort", 1), ("_id", 1)]
        found = await self._mongo.find(COMMUNITIES, {"$and": conditions}, None, by_name, limit)
        return [_community(document) for document in found]

    async def _list_joined(self, joined_by: Document, limit: int, include_archived: bool) -> list[Community]:
        """Returns the communities of the memberships, ordered by name, in one round trip."""
        community = {"from": COMMUNITIES, "localField": "community", "foreignField": "_id", "as": "community"}
        pipeline: list[Document] = [
            {"$match": joined_by},
            {"$lookup": community},
            {"$unwind": "$community"},
            {"$replaceRoot": {"newRoot": "$community"}},
            {"$match": {} if include_archived else {"archived_at": None}},
            {"$sort": {"sort": 1, "_id": 1}},
            {"$limit": limit},
        ]
        return [_community(document) for document in await self._mongo.aggregate(MEMBERSHIPS, pipeline)]

    async def member_ids(self, community_id: str, after_handle: str | None, limit: int) -> list[str]:
        """Returns ids of members, ordered by handle: those after `after_handle`, or from the first if it is None.

        For a conversation, returns the people who have joined. People who are asked are left out, since their later
        absence would show that they declined.
        """
        query: Document = {"community": community_id, "conversation": {"$ne": "REQUESTED"}}
        if after_handle is not None:
            query["handle"] = {"$gt": after_handle}
        cursor = self._memberships.find(query, {"user": 1}).sort("handle", 1).limit(limit)
        return [membership["user"] for membership in await cursor.to_list(None)]

    async def is_member(self, community_id: str, user_id: str) -> bool:
        """Returns whether the user is a member of the community."""
        return await self._memberships_by_pair.get((community_id, user_id)) is not None

    async def joined_communities(self, community_ids: Collection[str], user_id: str) -> set[str]:
        """Returns those of the communities of which the user is a member."""
        memberships = await self._memberships_by_pair.find([(each, user_id) for each in community_ids])
        return {each for each in community_ids if (each, user_id) in memberships}

    async def joined_by(self, organization_id: str, user_id: str, community_id: str | None = None) -> set[str]:
        """Returns the ids of the communities and conversations with a membership of the user, as stored now.

        `community_id` limits the result to this one.
        """
        query: Document = {"org": organization_id, "user": user_id}
        if community_id is not None:
            query["community"] = community_id
        rows = await self._mongo.find(MEMBERSHIPS, query, {"_id": 0, "community": 1})
        return {row["community"] for row in rows}

    async def find_joined(self, organization_id: str, user_id: str, id_: str, sort: str) -> str | None:
        """Returns the id of a community that the user has joined, by its id or its case-folded name, or None.

        Of several communities with the name, returns the oldest.
        """
        query: Document = {"org": organization_id, "$or": [{"_id": id_}, {"sort": sort}]}
        rows = await self._mongo.find(COMMUNITIES, query, {"_id": 1}, [("_id", 1)], MAX_KEYS)
        joined = await self.joined_communities([row["_id"] for row in rows], user_id)
        return min(joined, default=None)

    async def with_visible_topics(self, community_ids: Collection[str], find_joined: FindJoined) -> set[str]:
        """Returns those of the communities whose topics and members the user of `find_joined` may see."""
        ids = set(community_ids)
        communities, joined = await asyncio.gather(self._by_id.find(ids), find_joined(ids))
        return joined.union(id_ for id_, each in communities.items() if each.visibility is CommunityVisibility.PUBLIC)

    async def readable_by(self, community_ids: Collection[str], user_id: str) -> set[str]:
        """Returns those of the communities whose topics and members the user may see: they are PUBLIC, or joined."""
        return await self.with_visible_topics(community_ids, partial(self.joined_communities, user_id=user_id))

    async def visible_among(
        self, viewer: UserKey, community_ids: Collection[str], find_joined: FindJoined | None = None
    ) -> dict[str, Community]:
        """Returns those of the communities that the user may see, by id. PRIVATE ones need a membership.

        Everything that names a community to a user, also to an ADMIN, asks this function. `find_joined` replaces the
        lookup of the user's memberships.
        """
        ids = set(community_ids)
        find = find_joined or partial(self.joined_communities, user_id=viewer.user_id)
        found, joined = await asyncio.gather(self._by_id.find(ids), find(ids))
        own = {id_: each for id_, each in found.items() if each.organization_id == viewer.organization_id}
        return {
            id_: each
            for id_, each in own.items()
            if each.visibility is not CommunityVisibility.PRIVATE or id_ in joined
        }

    async def list_without_owner(self, organization_id: str, after: str | None, limit: int) -> list[Community]:
        """Returns communities that have members, but no active owner, by id: those after `after`, or from the first."""
        ids = await list_without_owner(self._mongo, organization_id, after, limit)
        found = await self._load(ids)
        return [found[id_] for id_ in ids]

    async def has_owner(self, community: Community) -> bool:
        """Returns whether an active person owns the community."""
        return bool(await self.active_with_role(community, CommunityRole.OWNER))

    async def active_with_role(self, community: Community, *roles: CommunityRole) -> set[str]:
        """Returns the ids of the people with one of the roles who are not deactivated."""
        found = await active_with_role(self._mongo, community.organization_id, [community.id], *roles)
        return {user_id for _, user_id in found}

    async def members_among(self, community_id: str, user_ids: Collection[str]) -> set[str]:
        """Returns those of the users who are members of the community, with one read per 1000 users."""
        if len(user_ids) == 1:
            # Batched with concurrent lookups.
            return {user_id for user_id in user_ids if await self.is_member(community_id, user_id)}
        ids, members = list(user_ids), set[str]()
        for start in range(0, len(ids), MAX_KEYS):
            query = {"community": community_id, "user": {"$in": ids[start : start + MAX_KEYS]}}
            memberships: list[MembershipDocument] = await self._mongo.find(MEMBERSHIPS, query, {"_id": 0, "user": 1})
            members.update([membership["user"] for membership in memberships])
        return members

    async def people_met_by(self, user: UserKey, user_ids: Collection[str]) -> set[str]:
        """Returns those of the users (at most 1000) who have joined a community or conversation of the user."""
        joined = {"conversation": {"$in": [None, ConversationState.JOINED.value]}}
        query = {"org": user.organization_id, "user": user.user_id, **joined}
        own = [row["community"] for row in await self._mongo.find(MEMBERSHIPS, query, {"_id": 0, "community": 1})]
        shared = {"community": {"$in": own}, "user": {"$in": list(user_ids)}, **joined}
        rows: list[MembershipDocument] = await self._mongo.find(MEMBERSHIPS, shared, {"_id": 0, "user": 1})
        return {row["user"] for row in rows}

    async def departures(self, community_id: str) -> int:
        """Returns how many times somebody has left a community or conversation, or the visibility was changed.

        While the number is unchanged, nobody has lost the right to read.
        """
        document = await self._communities.find_one({"_id": community_id}, {"departures": 1})
        if document is None:
            conversation = {"_id": community_id, "direct": {"$exists": True}}
            document = await self._mongo["topics"].find_one(conversation, {"departures": 1})
        return document.get("departures", 0) if document else 0

    async def join(self, community: Community, user: User) -> Community:
        """Makes the user a member. Idempotent.

        Raises: NotFound for a PRIVATE community; Forbidden for a banned user, and in a LISTED or archived community.
        """
        return await self._commit(community, JoinCommunity(community.id, user.id, user))

    async def leave(self, community: Community, user_id: str) -> Community:
        """Ends the membership, or withdraws the request to join. Idempotent. Raises: Conflict for the last owner."""
        return await self._commit(community, LeaveCommunity(community.id, user_id))

    async def _commit(self, community: Community, change: Change[None]) -> Community:
        await self._sequencer.commit(community_stream(community.id), change)
        return await self.get(community.organization_id, community.id)

    async def by_id(self, ids: Iterable[str]) -> dict[str, Community]:
        """Returns the communities of these ids that exist, of any organization, with one read."""
        return await self._load(list(set(ids)))

    async def _load(self, ids: Sequence[str]) -> dict[str, Community]:
        found = await self._mongo.find(COMMUNITIES, {"_id": {"$in": list(ids)}})
        return {document["_id"]: _community(document) for document in found}

    async def _load_memberships(self, pairs: Sequence[_Pair]) -> dict[_Pair, bool]:
        users: defaultdict[str, list[str]] = defaultdict(list)
        for community, user in pairs:
            users[community].append(user)
        queries = [{"community": community, "user": {"$in": ids}} for community, ids in users.items()]
        # The index covers the projection.
        projection = {"_id": 0, "community": 1, "user": 1}
        memberships: list[MembershipDocument] = await self._mongo.find(MEMBERSHIPS, {"$or": queries}, projection)
        return {(each["community"], each["user"]): True for each in memberships}


def _community(document: CommunityDocument) -> Community:
    return Community(
        document["_id"],
        document["org"],
        document["name"],
        document["description"],
        document["members"],
        stored_visibility(document),
        document.get("archived_at"),
        avatar_path(document["picture"]) if "picture" in document else None,
        banner_path(document["banner"]) if "banner" in document else None,
    )
