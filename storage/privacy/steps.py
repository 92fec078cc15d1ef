"""The steps of an erasure, in order. Each step is idempotent: it may be repeated after a crash, from its beginning."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from storage.chat.communities import CommunityStore
from storage.chat.memberships import RemoveErasedMember, community_stream
from storage.chat.messages import MessageStore
from storage.errors import NotFound
from storage.feed.follows import FollowPair, FollowStore
from storage.feed.posts import PostStore
from storage.feed.records import home_stream
from storage.identity.administration import USERS
from storage.identity.privacy_rules import Erasure, ErasureRule, Person, batches
from storage.identity.records import user_document_id, user_stream
from storage.ids import MessageKey, PostKey, new_id
from storage.mongo import Document, Mongo, Session
from storage.privacy.registry import PERSONAL_DATA
from storage.publishing.accounts import AccountStore
from storage.publishing.erasing import EraseScheduledPost
from storage.streams.log import jobs_stream, reset_stream
from storage.streams.sequencer import Sequencer

ERASED_NAME = "Deleted user"

Progress = Callable[[int], Awaitable[None]]
"""Called after each batch with the number of objects that it changed."""


class StepDelayed(Exception):
    """The step waits for other work. The erasure continues a second later."""


@dataclass(frozen=True, slots=True)
class Eraser:
    """Erases a person. Needs the stores of all areas."""

    mongo: Mongo
    sequencer: Sequencer
    messages: MessageStore
    posts: PostStore
    follows: FollowStore
    communities: CommunityStore
    accounts: AccountStore

    async def run(self, step: int, person: Person, progress: Progress) -> None:
        """Carries out one step. Raises: StepDelayed."""
        await STEPS[step](self, person, progress)

    async def delete_messages(self, person: Person, progress: Progress) -> None:
        """Replaces messages by tombstones, with events, so that open clients drop them."""

        async def erase(message: Document) -> None:
            if "deleted_at" not in message:
                await self.messages.delete(MessageKey(*message["_id"].values()), person.user_id, True)

        await self._change_each("messages", person, erase, progress)

    async def delete_posts(self, person: Person, progress: Progress) -> None:
        """Replaces posts by tombstones. Their fan-outs then remove them from feeds."""

        async def erase(post: Document) -> None:
            if "deleted_at" not in post:
                await self.posts.delete(PostKey(*post["_id"].values()), person.user_id, True)

        await self._change_each("posts", person, erase, progress)

    async def erase_documents(self, person: Person, progress: Progress) -> None:
        """Deletes and empties all documents for which no change of their area is needed."""
        for entry in PERSONAL_DATA.values():
            for rule in entry.rules:
                if rule.erasure is not Erasure.CHANGE:
                    await self._erase(entry.collection, rule, person, progress)

    async def remove_reactions(self, person: Person, progress: Progress) -> None:
        """Removes reactions to other people's messages, and corrects their counts."""

        async def erase(reaction: Document) -> None:
            id_ = reaction["_id"]
            message = MessageKey(id_["t"], id_["ts"])
            await self.messages.remove_reaction(person.organization_id, message, person.user_id, id_["e"])

        await self._change_each("reactions", person, erase, progress)

    async def end_follows(self, person: Person, progress: Progress) -> None:
        """Ends follows in both directions, after posts were removed from the followers' feeds."""
        fan_outs = {"open": True, "_id.o": person.organization_id, "author": person.user_id}
        if await self.mongo.find("fan_outs", fan_outs, {"_id": 1}, limit=1):
            raise StepDelayed

        async def erase(follow: Document) -> None:
            await self.follows.unfollow(FollowPair(follow["org"], follow["follower"], follow["followee"]))

        await self._change_each("follows", person, erase, progress)

    async def erase_scheduled_posts(self, person: Person, progress: Progress) -> None:
        """Empties scheduled posts, cancels what is not published, and deletes posts of the sandbox."""

        async def erase(post: Document) -> None:
            await self._delete_sandbox_posts(post["_id"])
            change = EraseScheduledPost(person.organization_id, post["_id"])
            await self.sequencer.commit(jobs_stream(person.organization_id), change)

        await self._change_each("scheduled_posts", person, erase, progress)

    async def _delete_sandbox_posts(self, scheduled_post_id: str) -> None:
        publications = await self.mongo.find("publications", {"post": scheduled_post_id}, {"target": 1})
        keys = [{"account": each["target"]["id"], "key": each["_id"]} for each in publications]
        await self.mongo["sandbox_posts"].delete_many({"_id": {"$in": keys}})

    async def disconnect_accounts(self, person: Person, progress: Progress) -> None:
        """Disconnects accounts that the person connected. Publications that wait for them fail."""
        await self._change_each("accounts", person, lambda account: self.accounts.erase(account["_id"]), progress)

    async def end_memberships(self, person: Person, progress: Progress) -> None:
        """Ends memberships of communities, also those of last owners, and requests to join."""

        async def erase(community_id: str) -> None:
            change = RemoveErasedMember(community_id, person.user_id)
            await self.sequencer.commit(community_stream(community_id), change)

        await self._change_each("memberships", person, lambda each: erase(each["community"]), progress)
        await self._change_each("join_requests", person, lambda each: erase(each["_id"]["c"]), progress)

    async def remove_operator_reasons(self, person: Person, progress: Progress) -> None:
        """Removes the reasons that the person gave for decisions about mail addresses and domains."""

        async def erase(decision: Document) -> None:
            organization_id, subject = person.organization_id, decision["subject"]
            if isinstance(subject, bytes):
                unblocked = {"_id": subject, "unblocked.by": person.user_id}
                removed = {"unblocked.reason": "", "told.unblocked.reason": ""}
                await self.mongo["mail_addresses"].update_one(unblocked, {"$set": removed})
            else:
                blocked = {"_id": f"{subject} {organization_id}", "hand.by": person.user_id}
                removed = {"hand.reason": "", "told.hand.reason": ""}
                await self.mongo["mail_domains"].update_one(blocked, {"$set": removed})
            await self.mongo["mail_audit"].update_one({"_id": decision["_id"]}, {"$set": {"reason": ""}})

        await self._change_each("mail_audit", person, erase, progress)

    async def delete_local_account(self, person: Person, progress: Progress) -> None:
        """Deletes the local account, with links and mails to its address. Invitations lose the address."""
        key = {"_id": user_document_id(*person)}
        user = await self.mongo[USERS].find_one(key, {"email": 1}) or {}
        account = await self.mongo["local_accounts"].find_one(key, {"address": 1}) or {}
        addresses = [each for each in (user.get("email"), account.get("address")) if each]
        if addresses:
            query = {"org": person.organization_id, "address": {"$in": addresses}}
            await self.mongo["account_tokens"].delete_many(query)
            await self.mongo["account_mails"].delete_many(query)
            # An empty address is nobody's, so that nobody else can accept the invitation.
            await self.mongo["invitations"].update_many(query, {"$set": {"address": ""}})
        deleted = await self.mongo["local_accounts"].delete_one(key)
        await progress(deleted.deleted_count)

    async def delete_events(self, person: Person, progress: Progress) -> None:
        """Deletes the events of the person's own streams. No cursor of these streams can be resumed any more."""
        for stream in (user_stream(*person), home_stream(*person)):

            async def reset(session: Session, stream: Any = stream) -> None:
                await reset_stream(self.mongo, stream, session)

            await self.mongo.transact(reset)
        for rule in PERSONAL_DATA["events"].rules:
            await self._delete("events", rule, person, progress)

    async def reduce_user(self, person: Person, progress: Progress) -> None:
        """Reduces the user's document to a record to which references resolve."""
        record = {
            "handle": f"deleted_{new_id()[-12:]}",
            "name": ERASED_NAME,
            "search": [],
            "roles": [],
            "roles_granted": True,
            "followers": 0,
            "following": 0,
            "erased_at": "$$NOW",
        }
        kept = {name: f"${name}" for name in ("_id", "at", "deactivated_at", "erasing_at")}
        query = {"_id": user_document_id(*person), "erased_at": {"$exists": False}}
        reduced = await self.mongo[USERS].update_one(query, [{"$replaceWith": {**kept, **record}}])
        await progress(reduced.modified_count)

    async def _change_each(
        self, collection: str, person: Person, change: Callable[[Document], Awaitable[None]], progress: Progress
    ) -> None:
        """Applies `change` to each of the collection's documents that a change erases, a batch at a time."""

        async def change_if_it_exists(document: Document) -> None:
            try:
                await change(document)
            except NotFound:
                return

        for rule in PERSONAL_DATA[collection].rules:
            if rule.erasure is Erasure.CHANGE:
                async for documents in batches(self.mongo, collection, rule.documents, person, CHANGES_AT_ONCE):
                    await asyncio.gather(*map(change_if_it_exists, documents))
                    await progress(len(documents))

    async def _erase(self, collection: str, rule: ErasureRule, person: Person, progress: Progress) -> None:
        if rule.erasure is Erasure.DELETE:
            await self._delete(collection, rule, person, progress)
            return
        async for documents in batches(self.mongo, collection, rule.documents, person):
            ids = {"_id": {"$in": [document["_id"] for document in documents]}}
            await self.mongo[collection].update_many(ids, {"$set": dict(rule.emptied or {})})
            await progress(len(documents))

    async def _delete(self, collection: str, rule: ErasureRule, person: Person, progress: Progress) -> None:
        async for documents in batches(self.mongo, collection, rule.documents, person):
            await self.mongo[collection].delete_many({"_id": {"$in": [document["_id"] for document in documents]}})
            await progress(len(documents))


CHANGES_AT_ONCE = 50
"""Number of changes that an erasure commits at once. Streams take up to a hundred changes in one commit."""

STEPS: Sequence[Callable[[Eraser, Person, Progress], Awaitable[None]]] = (
    Eraser.delete_messages,
    Eraser.delete_posts,
    Eraser.erase_documents,
    Eraser.remove_reactions,
    Eraser.end_follows,
    Eraser.erase_scheduled_posts,
    Eraser.disconnect_accounts,
    Eraser.end_memberships,
    Eraser.remove_operator_reasons,
    Eraser.delete_local_account,
    Eraser.delete_events,
    Eraser.reduce_user,
)
"""The user's document comes last, since the steps before need its handle to stay reserved."""
