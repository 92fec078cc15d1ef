"""The steps of an erasure. After a crash, a step is repeated from its beginning, so each step is idempotent."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from storage.chat.communities import CommunityStore
from storage.chat.conversations.rules import conversations_stream
from storage.chat.conversations.store import ConversationStore
from storage.chat.memberships import RemoveErasedMember, community_stream
from storage.chat.messages import MessageStore
from storage.chat.reactions.changes import EraseReaction
from storage.chat.threads.changes import UnfollowThread
from storage.errors import NotFound
from storage.feed.follows import FollowPair, FollowStore
from storage.feed.posts import PostStore
from storage.feed.reactions import PostReactionStore
from storage.feed.records import home_stream
from storage.files.deletion import FileDeletion
from storage.identity.administration import USERS
from storage.identity.privacy_rules import ErasureMethod, ErasureRule, read_batches
from storage.identity.records import user_document_id, user_stream
from storage.ids import MessageKey, PostKey, UserKey, new_id
from storage.mail.addresses import AddressKeys
from storage.mongo import Document, Mongo, Session
from storage.privacy.addresses import erase_addresses, forget_readable_addresses
from storage.privacy.registry import PERSONAL_DATA
from storage.publishing.accounts import ConnectedAccountStore
from storage.publishing.erasing import EraseScheduledPost
from storage.streams.log import Stream, jobs_stream, reset_stream
from storage.streams.sequencer import Sequencer

ERASED_NAME = "Deleted user"

RecordErasureProgress = Callable[[int], Awaitable[None]]
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
    post_reactions: PostReactionStore
    follows: FollowStore
    communities: CommunityStore
    conversations: ConversationStore
    accounts: ConnectedAccountStore
    files: FileDeletion
    address_keys: AddressKeys

    async def run(self, step: int, person: UserKey, progress: RecordErasureProgress) -> None:
        """Carries out one step. Raises: StepDelayed."""
        await STEPS[step](self, person, progress)

    async def delete_messages(self, person: UserKey, progress: RecordErasureProgress) -> None:
        """Replaces messages by tombstones, with events, so that open clients drop them."""

        async def erase(message: Document) -> None:
            if "deleted_at" not in message:
                await self.messages.erase(MessageKey(*message["_id"].values()))

        await self._change_each("messages", person, erase, progress)

    async def delete_posts(self, person: UserKey, progress: RecordErasureProgress) -> None:
        """Replaces posts by tombstones. Their fan-outs then remove them from feeds."""

        async def erase(post: Document) -> None:
            if "deleted_at" not in post:
                await self.posts.erase(PostKey(*post["_id"].values()))

        await self._change_each("posts", person, erase, progress)

    async def erase_documents(self, person: UserKey, progress: RecordErasureProgress) -> None:
        """Deletes and empties all documents for which no change of their area is needed."""
        for entry in PERSONAL_DATA.values():
            for rule in entry.rules:
                if rule.erasure is not ErasureMethod.CHANGE:
                    await self._erase(entry.collection, rule, person, progress)

    async def remove_reactions(self, person: UserKey, progress: RecordErasureProgress) -> None:
        """Removes reactions to other people's messages and posts, and corrects the counts of reactions."""

        async def erase(reaction: Document) -> None:
            id_ = reaction["_id"]
            message = MessageKey(id_["t"], id_["ts"])
            change = EraseReaction(message, person.organization_id, person.user_id, id_["e"])
            await self.sequencer.commit(Stream("topic", message.topic_id), change)

        async def erase_of_post(reaction: Document) -> None:
            id_ = reaction["_id"]
            await self.post_reactions.remove(PostKey(id_["o"], id_["ts"]), person.user_id, id_["e"])

        await self._change_each("reactions", person, erase, progress)
        await self._change_each("post_reactions", person, erase_of_post, progress)

    async def end_follows(self, person: UserKey, progress: RecordErasureProgress) -> None:
        """Ends follows in both directions, after posts were removed from the followers' feeds."""
        fan_outs = {"open": True, "_id.o": person.organization_id, "author": person.user_id}
        if await self.mongo.find("fan_outs", fan_outs, {"_id": 1}, limit=1):
            raise StepDelayed

        async def erase(follow: Document) -> None:
            await self.follows.unfollow(FollowPair(follow["org"], follow["follower"], follow["followee"]))

        await self._change_each("follows", person, erase, progress)

    async def erase_scheduled_posts(self, person: UserKey, progress: RecordErasureProgress) -> None:
        """Empties scheduled posts, cancels their unpublished publications, and deletes posts of the sandbox."""

        async def erase(post: Document) -> None:
            await self._delete_sandbox_posts(post["_id"])
            change = EraseScheduledPost(person.organization_id, post["_id"])
            await self.sequencer.commit(jobs_stream(person.organization_id), change)

        await self._change_each("scheduled_posts", person, erase, progress)

    async def _delete_sandbox_posts(self, scheduled_post_id: str) -> None:
        publications = await self.mongo.find("publications", {"post": scheduled_post_id}, {"target": 1})
        keys = [{"account": each["target"]["id"], "key": each["_id"]} for each in publications]
        await self.mongo["sandbox_posts"].delete_many({"_id": {"$in": keys}})

    async def delete_files(self, person: UserKey, progress: RecordErasureProgress) -> None:
        """Deletes all files that the person uploaded, after the messages and posts that they are attached to."""
        await self._change_each("files", person, lambda file: self.files.erase(file["_id"]), progress)

    async def disconnect_accounts(self, person: UserKey, progress: RecordErasureProgress) -> None:
        """Disconnects accounts that the person connected. Publications that wait for them fail."""
        await self._change_each("accounts", person, lambda account: self.accounts.erase(account["_id"]), progress)

    async def end_memberships(self, person: UserKey, progress: RecordErasureProgress) -> None:
        """Ends memberships and follows of threads, and withdraws requests to join. Last owners leave, too."""

        async def unfollow(thread: Document) -> None:
            await self.sequencer.commit(Stream("topic", thread["_id"]), UnfollowThread(person.user_id))

        async def erase(community_id: str) -> None:
            change = RemoveErasedMember(community_id, person.user_id)
            await self.sequencer.commit(community_stream(community_id), change)

        async def erase_membership(membership: Document) -> None:
            if "conversation" in membership:
                await self.conversations.leave(person.organization_id, person.user_id, membership["community"])
            else:
                await erase(membership["community"])

        await self._change_each("topics", person, unfollow, progress)
        await self._change_each("memberships", person, erase_membership, progress)
        await self._change_each("join_requests", person, lambda each: erase(each["_id"]["c"]), progress)

    async def remove_operator_reasons(self, person: UserKey, progress: RecordErasureProgress) -> None:
        """Removes the reasons that the person gave for decisions about mail addresses and domains."""

        async def erase(decision: Document) -> None:
            organization_id, subject = person.organization_id, decision["subject"]
            if isinstance(subject, bytes):
                for name in ("unblocked", "decision"):
                    decided = {"_id": subject, f"{name}.by": person.user_id}
                    removed = {f"{name}.reason": "", f"summary.{name}.reason": ""}
                    await self.mongo["mail_addresses"].update_one(decided, {"$set": removed})
            else:
                blocked = {"_id": f"{subject} {organization_id}", "decision.by": person.user_id}
                removed = {"decision.reason": "", "summary.decision.reason": ""}
                await self.mongo["mail_domains"].update_one(blocked, {"$set": removed})
            await self.mongo["mail_audit"].update_one({"_id": decision["_id"]}, {"$set": {"reason": ""}})

        await self._change_each("mail_audit", person, erase, progress)

    async def delete_local_account(self, person: UserKey, progress: RecordErasureProgress) -> None:
        """Deletes the local account, with links and mails to its address. Ends invitations that are for the address."""
        await forget_readable_addresses(self.mongo, self.address_keys, person)
        await erase_addresses(self.mongo, person)
        deleted = await self.mongo["local_accounts"].delete_one({"_id": user_document_id(*person)})
        await progress(deleted.deleted_count)

    async def repeat_steps(self, person: UserKey, progress: RecordErasureProgress) -> None:
        """Repeats earlier steps, for what was written after them: by requests about the person, and by relays.

        From the request on, commits and requests refuse writes about the person (storage/identity/erased_people.py).
        So nothing can be written after this step.
        """

        async def renew_claim(_changed: int) -> None:
            # Most objects were counted when the step was carried out before.
            await progress(0)

        for step in REPEATED_STEPS:
            await step(self, person, renew_claim)

    async def delete_events(self, person: UserKey, progress: RecordErasureProgress) -> None:
        """Deletes the events of the person's own streams. No cursor of these streams can be resumed any more."""
        for stream in (user_stream(*person), home_stream(*person), conversations_stream(*person)):

            async def reset(session: Session, stream: Any = stream) -> None:
                await reset_stream(self.mongo, stream, session)

            await self.mongo.transact(reset)
        for rule in PERSONAL_DATA["events"].rules:
            await self._delete("events", rule, person, progress)

    async def reduce_user(self, person: UserKey, progress: RecordErasureProgress) -> None:
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
        self,
        collection: str,
        person: UserKey,
        change: Callable[[Document], Awaitable[None]],
        progress: RecordErasureProgress,
    ) -> None:
        """Applies `change` to the person's documents that the collection's CHANGE rules select, a batch at a time."""

        async def change_if_it_exists(document: Document) -> None:
            try:
                await change(document)
            except NotFound:
                return

        for rule in PERSONAL_DATA[collection].rules:
            if rule.erasure is ErasureMethod.CHANGE:
                async for documents in read_batches(self.mongo, collection, rule.documents, person, CHANGES_AT_ONCE):
                    await asyncio.gather(*map(change_if_it_exists, documents))
                    await progress(len(documents))

    async def _erase(
        self, collection: str, rule: ErasureRule, person: UserKey, progress: RecordErasureProgress
    ) -> None:
        if rule.erasure is ErasureMethod.DELETE:
            await self._delete(collection, rule, person, progress)
            return
        async for documents in read_batches(self.mongo, collection, rule.documents, person):
            await self._empty(collection, rule, [document["_id"] for document in documents])
            await progress(len(documents))

    async def _empty(self, collection: str, rule: ErasureRule, ids: list[Any]) -> None:
        query, update = {"_id": {"$in": ids}}, {"$set": dict(rule.new_values or {})}
        await self.mongo.write_past_orphans(lambda: self.mongo[collection].update_many(query, update))

    async def _delete(
        self, collection: str, rule: ErasureRule, person: UserKey, progress: RecordErasureProgress
    ) -> None:
        async for documents in read_batches(self.mongo, collection, rule.documents, person):
            await self._delete_ids(collection, [document["_id"] for document in documents])
            await progress(len(documents))

    async def _delete_ids(self, collection: str, ids: list[Any]) -> None:
        query = {"_id": {"$in": ids}}
        await self.mongo.write_past_orphans(lambda: self.mongo[collection].delete_many(query))


CHANGES_AT_ONCE = 50
"""Number of changes that an erasure commits at once. Streams take up to a hundred changes in one commit."""

Step = Callable[[Eraser, UserKey, RecordErasureProgress], Awaitable[None]]

REPEATED_STEPS: Sequence[Step] = (
    Eraser.delete_messages,
    Eraser.delete_posts,
    Eraser.remove_reactions,
    Eraser.end_follows,
    Eraser.end_memberships,
    Eraser.delete_local_account,
    Eraser.erase_documents,
)
"""The steps that other people's requests, or outbox rows of earlier changes, may have overtaken."""

STEPS: Sequence[Step] = (
    Eraser.delete_messages,
    Eraser.delete_posts,
    Eraser.erase_documents,
    Eraser.remove_reactions,
    Eraser.end_follows,
    Eraser.erase_scheduled_posts,
    Eraser.delete_files,
    Eraser.disconnect_accounts,
    Eraser.end_memberships,
    Eraser.remove_operator_reasons,
    Eraser.delete_local_account,
    Eraser.repeat_steps,
    Eraser.delete_events,
    Eraser.reduce_user,
)
"""The steps in their order. The user's document is reduced last, because earlier steps read it."""
