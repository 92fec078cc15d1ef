"""A machine that applies follows, blocks, posts, runs of workers, faults and crashes to home feeds and to a model."""

import asyncio
import itertools
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from jobs.context import JobContext
from jobs.fan_out import finish_fan_outs, rebuild_feeds, retry_failed_inserts, settle_follows
from storage.chat.roles import Moderator
from storage.errors import DomainError
from storage.feed.edits import NewText
from storage.feed.fan_outs import MAX_TRIES, FanOutClaim
from storage.feed.feeds import FollowerChunk
from storage.feed.follows import FollowPair
from storage.feed.home import HomeFeedState
from storage.feed.records import Post, PostParent, PostParentKind, home_stream
from storage.feed.trimming import MAX_ITEMS
from storage.ids import PostKey
from storage.timeline import NOW, timeline_range
from tests.storage.feed.feed_scenario import FeedScenario, load_reader

AUTHORS = ("ann", "bob", "cyd")
READERS = (*AUTHORS, "fay", "gus", "hal")
REFUSED_READER = st.sampled_from(["fay", "gus"])
"""Readers whose feed items MongoDB can be made to refuse."""

SUBSCRIBERS = ("bob", "gus")
"""Readers whose home streams exist from the beginning. Events are emitted only to existing streams."""

AUTHOR, READER = st.sampled_from(AUTHORS), st.sampled_from(READERS)
REPOST = PostParentKind.REPOST
MAX_FOLLOWERS = 3
"""A low threshold, which authors cross in both directions."""


@dataclass(frozen=True)
class JobsOnLoop:
    """Stores, jobs and the event loop that they run on."""

    runner: asyncio.Runner
    jobs: JobContext


@dataclass
class FeedModel:
    """The expected state: follows, blocks and existing posts, with their authors."""

    follows: set[tuple[str, str]] = field(default_factory=set)
    blocks: set[tuple[str, str]] = field(default_factory=set)
    posts: dict[int, str] = field(default_factory=dict)
    merged: set[int] = field(default_factory=set)
    texts: dict[int, str] = field(default_factory=dict)
    parents: dict[int, PostParent] = field(default_factory=dict)

    def authors(self, reader: str) -> set[str]:
        """Returns the people whose posts are in a reader's home feed."""
        return {author for follower, author in self.follows if follower == reader} | {reader}

    def posts_of(self, authors: set[str]) -> set[int]:
        return {timestamp for timestamp, author in self.posts.items() if author in authors}

    def visible_posts(self, reader: str) -> set[int]:
        """Returns the posts of a reader's whole home feed, with repeated reposts."""
        authors = self.authors(reader)
        return {timestamp for timestamp in self.posts_of(authors) if self.is_visible(timestamp, reader, authors)}

    def is_visible(self, timestamp: int, reader: str, authors: set[str]) -> bool:
        parent = self.parents.get(timestamp)
        if parent is None:
            return True
        if parent.kind is REPOST:
            return parent.timestamp in self.posts and (reader, parent.author_id) not in self.blocks
        return self.posts[timestamp] == reader or parent.author_id in authors

    def content(self, timestamp: int) -> int:
        """Returns the post itself, or the post that it reposts."""
        parent = self.parents.get(timestamp)
        return parent.timestamp if parent is not None and parent.kind is REPOST else timestamp

    def expected_posts(self, reader: str, limit: int) -> set[int]:
        """Returns the posts that a feed of limited size shows: of the newest and those that are merged on read.

        Leaves out reposts of what the whole feed shows before. A feed without that post may show them.
        """
        posts = self.posts_of(self.authors(reader))
        merged = {timestamp for timestamp in posts & self.merged if self.posts[timestamp] != reader}
        held = merged | set(sorted(posts - merged)[-limit:])
        first: dict[int, int] = {}
        for timestamp in sorted(visible := self.visible_posts(reader)):
            first.setdefault(self.content(timestamp), timestamp)
        return held & visible & set(first.values())

    def is_follow_refused(self, one: str, other: str) -> bool:
        return one == other or bool({(one, other), (other, one)} & self.blocks)


class FeedMachine(RuleBasedStateMachine):
    """Applies each rule to the product and to the model."""

    process: ClassVar[JobsOnLoop]
    max_items: ClassVar[int] = MAX_ITEMS

    def __init__(self) -> None:
        super().__init__()
        self.run = self.process.runner.run
        self.jobs, self.stores = self.process.jobs, self.process.jobs.stores
        self.feed, self.model = FeedScenario(self.stores), FeedModel()
        self.stopped_claims: list[FanOutClaim] = []
        self.resumed_workers = 0
        self.deleted: set[int] = set()
        self.authors: dict[int, str] = {}
        self.ended_follows: set[tuple[str, str]] = set()
        # By post, the readers who have followed its author at any time since the post.
        self.possible_receivers: dict[int, set[str]] = {}
        # Posts, with their authors, whose removal every subscriber must receive.
        self.expected_removals: dict[str, dict[int, str]] = {reader: {} for reader in SUBSCRIBERS}
        self.reader_cycle = itertools.cycle(READERS)
        self.org = self.feed.organization_id
        self.run(self.feed.sign_in(*READERS))
        self.run(self.create_subscriber_streams())
        # Ann's posts are pushed, Cyd's are merged, Bob is at the threshold.
        for reader, authors in {
            "fay": "ann bob",
            "gus": "ann bob cyd",
            "hal": "bob cyd",
            "ann": "cyd",
            "bob": "cyd",
        }.items():
            for author in authors.split():
                self.follow(reader, author)

    async def create_subscriber_streams(self) -> None:
        """Creates the home streams of the subscribers."""
        for reader in SUBSCRIBERS:
            await self.feed.subscribe(reader)

    def pair(self, one: str, other: str) -> FollowPair:
        return FollowPair(self.org, one, other)

    @initialize(author=st.sampled_from(["ann", "bob"]), has_inserted=st.booleans())
    def replace_stopped_worker(self, author: str, has_inserted: bool) -> None:
        """Lets another worker finish the fan-out of a stopped worker, which then resumes. Chance rarely does this."""
        self.stop_worker(self.create_post(author), has_inserted, resumes_later=True)
        self.run_workers()
        self.resume_stopped_worker()

    @initialize()
    def reply_to_stranger(self) -> None:
        """Lets Ann reply to Cyd. Fay follows Ann only, so her feed has an item that it does not show."""
        question = self.create_post("cyd")
        self.create_post("ann", self.run(self.stores.posts.get(question)).as_parent(PostParentKind.REPLY))
        self.run_workers()
        assert self.model.visible_posts("fay") >= set(self.run(self.read_feed("fay")))

    @rule(reader=READER, author=AUTHOR)
    def follow(self, reader: str, author: str) -> None:
        if reader != author:
            refused = self.run(is_refused(self.stores.follows.follow(self.pair(reader, author))))
            assert refused == self.model.is_follow_refused(reader, author)
            if not refused:
                self.model.follows.add((reader, author))
                for timestamp in [each for each, post_author in self.authors.items() if post_author == author]:
                    self.possible_receivers[timestamp].add(reader)

    @rule(reader=READER, author=AUTHOR)
    def unfollow(self, reader: str, author: str) -> None:
        self.run(self.stores.follows.unfollow(self.pair(reader, author)))
        self.model.follows.discard((reader, author))
        self.ended_follows.add((reader, author))
        self.expect_no_removal(reader, author)

    def expect_no_removal(self, reader: str, author: str) -> None:
        """Expects no removal of an author's posts after the reader's unfollow or block, which emit no event."""
        expected_removals = self.expected_removals.get(reader, {})
        for timestamp in [each for each, post_author in expected_removals.items() if post_author == author]:
            del expected_removals[timestamp]

    @rule(reader=st.sampled_from(SUBSCRIBERS), author=AUTHOR)
    def follow_anew(self, reader: str, author: str) -> None:
        """Unfollows and follows again. A backfill then adds posts to the feed without arrival events."""
        self.unfollow(reader, author)
        self.follow(reader, author)

    @rule(one=READER, other=READER)
    def block(self, one: str, other: str) -> None:
        if one != other:
            self.run(self.stores.relations.block(self.org, one, other))
            self.model.blocks.add((one, other))
            self.model.follows -= {(one, other), (other, one)}
            self.ended_follows |= {(one, other), (other, one)}
            self.expect_no_removal(one, other)
            self.expect_no_removal(other, one)

    @rule(one=READER, other=READER)
    def unblock(self, one: str, other: str) -> None:
        self.run(self.stores.relations.unblock(self.org, one, other))
        self.model.blocks.discard((one, other))

    @rule(author=AUTHOR)
    def post(self, author: str) -> None:
        self.create_post(author)

    def create_post(self, author: str, parent: PostParent | None = None) -> PostKey:
        is_repost = parent is not None and parent.kind is REPOST
        work = self.repost(author, parent.timestamp) if parent and is_repost else self.feed.post(author, parent=parent)
        post = self.run(work)
        followers = {one for one, other in self.model.follows if other == author}
        assert post.merged == (len(followers) > MAX_FOLLOWERS)
        self.possible_receivers[post.timestamp] = followers
        self.model.posts[post.timestamp] = self.authors[post.timestamp] = author
        self.model.texts[post.timestamp] = post.text
        if parent is not None:
            self.model.parents[post.timestamp] = parent
        if post.merged:
            self.model.merged.add(post.timestamp)
        assert is_repost or post.timestamp in self.run(self.read_feed(author)), "The author's own feed lacks the post."
        return PostKey(self.org, post.timestamp)

    @rule(author=AUTHOR, kind=st.sampled_from([PostParentKind.REPLY, REPOST, REPOST]), data=st.data())
    def respond(self, author: str, kind: PostParentKind, data: st.DataObject) -> None:
        """Replies to a post or reposts it. A second repost of a post by its author changes nothing."""
        originals = sorted(self.model.posts.keys() - {each for each in self.model.parents if self.is_repost(each)})
        if originals:
            timestamp = data.draw(st.sampled_from(originals))
            parent = self.run(self.stores.posts.get(PostKey(self.org, timestamp))).as_parent(kind)
            if kind is REPOST and (author, timestamp) in self.reposts():
                assert self.run(self.repost(author, timestamp)).timestamp in self.model.posts
            else:
                self.create_post(author, parent)

    def is_repost(self, timestamp: int) -> bool:
        return self.model.content(timestamp) != timestamp

    def reposts(self) -> set[tuple[str, int]]:
        """Returns the author and the original of each repost that exists."""
        return {(self.authors[each], self.model.content(each)) for each in self.model.posts if self.is_repost(each)}

    async def repost(self, author: str, timestamp: int) -> Post:
        return await self.stores.posts.repost(author, await self.stores.posts.get(PostKey(self.org, timestamp)))

    @rule(data=st.data(), text=st.sampled_from(["smoke", "a beacon"]))
    def edit(self, data: st.DataObject, text: str) -> None:
        if texts := sorted(each for each in self.model.posts if not self.is_repost(each)):
            timestamp = data.draw(st.sampled_from(texts))
            change = self.stores.post_edits.edit(
                PostKey(self.org, timestamp), self.authors[timestamp], NewText(text, (), ())
            )
            self.run(change)
            self.model.texts[timestamp] = text

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        if self.model.posts:
            self.delete_post(data.draw(st.sampled_from(sorted(self.model.posts))))

    def delete_post(self, timestamp: int) -> None:
        author = self.model.posts.pop(timestamp)
        readers = [each for each in SUBSCRIBERS if timestamp in self.run(self.read_feed(each))]
        post = self.run(self.stores.posts.delete(PostKey(self.org, timestamp), Moderator(author)))
        self.deleted.add(timestamp)
        for reader in readers:
            if reader == author or not post.merged:
                self.expected_removals[reader][timestamp] = author

    @rule(data=st.data(), has_inserted=st.booleans(), resumes_later=st.booleans())
    def crash(self, data: st.DataObject, has_inserted: bool, resumes_later: bool) -> None:
        """Stops a worker after it claimed a fan-out or after it inserted a chunk."""
        if self.model.posts:
            key = PostKey(self.org, data.draw(st.sampled_from(sorted(self.model.posts))))
            self.stop_worker(key, has_inserted, resumes_later)

    def stop_worker(self, key: PostKey, has_inserted: bool, resumes_later: bool) -> None:
        claim = self.run(self.claim(key))
        if claim is not None and has_inserted:
            self.run(self.insert(claim))
        if claim is not None and resumes_later:
            self.stopped_claims.append(claim)

    async def claim(self, key: PostKey) -> FanOutClaim | None:
        claim = await self.stores.fan_outs.claim(key)
        await self.feed.backdate("fan_outs", "lease_until")
        return claim

    async def insert(self, claim: FanOutClaim) -> tuple[FollowerChunk, set[str]]:
        """Inserts a chunk. Returns the chunk of followers, and the readers whose insert failed."""
        chunk = await self.stores.feeds.followers(self.org, claim.author_id, claim.after)
        post = await self.stores.posts.find_with_tombstone(claim.key)
        assert post is not None
        return chunk, await self.stores.feeds.push(post, chunk.follower_ids)

    @rule()
    def resume_stopped_worker(self) -> None:
        """Lets a stopped worker insert its chunk late. The chunk counts only if no other worker took over."""
        if self.stopped_claims:
            claim = self.stopped_claims.pop()
            self.resumed_workers += 1
            if claim.task == "push":
                chunk, failed = self.run(self.insert(claim))
                delivered = len(chunk.follower_ids) - len(failed)
                work = self.stores.fan_outs.advance(claim, chunk.after, chunk.is_last, delivered, failed)
                self.run(work)

    @rule()
    def run_workers(self) -> None:
        self.run(self.work())

    @rule(reader=REFUSED_READER, author=AUTHOR, runs_workers=st.booleans())
    def refuse_writes(self, reader: str, author: str, runs_workers: bool) -> None:
        self.run(self.feed.refuse_writes_of("feed_items", reader))
        self.post(author)
        if runs_workers:
            self.run_workers()

    @rule()
    def accept_writes(self) -> None:
        self.run(self.feed.refuse_writes_of("feed_items", None))

    @rule(reader=READER)
    def become_absent(self, reader: str) -> None:
        """Makes a reader absent for more than 30 days; on return the feed is rebuilt."""
        self.run(self.feed.backdate("feeds", "seen_at", {"_id": {"o": self.org, "u": reader}}, days=31))

    @invariant()
    def feed_holds_only_visible_posts(self) -> None:
        """Checks one reader's feed at a time, because reading takes long. `check` compares all feeds at the end."""
        reader = next(self.reader_cycle)
        timestamps = self.run(self.read_feed(reader, page_size=3))
        assert set(timestamps) <= self.model.visible_posts(reader)
        assert timestamps == sorted(timestamps, reverse=True)
        contents = [self.model.content(timestamp) for timestamp in timestamps]
        assert len(contents) == len(set(contents)), "The feed shows a post twice."

    async def read_feed(self, reader: str, page_size: int = 999) -> list[int]:
        """Returns the whole feed, read page by page without recording a visit."""
        blocked = await self.stores.relations.blocked_users_of(self.org, reader)
        viewer = await load_reader(self.stores.home, self.org, reader, blocked)
        timestamps: list[int] = []
        page_range = timeline_range(latest=NOW, limit=page_size)
        while True:
            page = await self.stores.home.page(viewer, page_range)
            timestamps += [post.timestamp for post in page.items]
            assert all(post.text == self.model.texts[post.timestamp] for post in page.items)
            assert len(page.items) == page_size or not page.has_older
            if not page.has_older:
                return timestamps
            page_range = timeline_range(latest=page.oldest, limit=page_size, inclusive=False)

    async def work(self) -> None:
        """Runs every sweeper until no work is left."""
        await self.feed.backdate("fan_outs", "lease_until")
        await self.feed.backdate("follow_changes", "at")
        await settle_follows(self.jobs)
        while await finish_fan_outs(self.jobs):
            pass
        await self.feed.backdate("feed_retries", "due")
        await retry_failed_inserts(self.jobs)

    def teardown(self) -> None:
        self.run(self.check())

    async def check(self) -> None:
        await self.feed.refuse_writes_of("feed_items", None)
        for _ in range(MAX_TRIES + 1):
            await self.work()
        # Relays trim the authors' own feeds, and remove deleted posts from feeds of subscribers.
        await self.feed.wait_for_relays(*(home_stream(self.org, reader) for reader in READERS))
        failed_retries = await self.feed.documents("feed_retries")
        assert all("failed_at" in retry for retry in failed_retries)
        for reader in READERS:
            timestamps = set(await self.read_until_ready(reader))
            lost = {retry["_id"]["ts"] for retry in failed_retries if retry["_id"]["u"] == reader}
            expected = self.model.expected_posts(reader, self.max_items)
            assert timestamps <= self.model.visible_posts(reader), reader
            assert expected <= timestamps | lost, reader
        await self.check_counts(failed_retries)
        await self.check_events()

    async def read_until_ready(self, reader: str) -> list[int]:
        """Returns the whole feed after the rebuilds that a read of its end asks for."""
        home = self.stores.home
        for _ in range(100):
            visit = await home.record_visit(self.org, reader)
            viewer = await load_reader(
                home, self.org, reader, await self.stores.relations.blocked_users_of(self.org, reader)
            )
            page = await home.page(viewer, timeline_range(latest=NOW, limit=999))
            if visit.state is HomeFeedState.READY and not await home.begin_refill(viewer, page, visit):
                return await self.read_feed(reader, page_size=3)
            await rebuild_feeds(self.jobs)
        raise AssertionError(f"The feed of {reader} is rebuilt at every read.")

    async def check_counts(self, failed_retries: list[dict[str, Any]]) -> None:
        """Asserts that no fan-out is open and that no follower is counted twice."""
        for fan_out in await self.feed.documents("fan_outs"):
            assert (fan_out["open"], fan_out["state"], fan_out["retrying"]) == (False, "COMPLETED", 0)
            assert fan_out["total"] == fan_out["delivered"] + fan_out["failed"]
            assert fan_out["total"] <= len(self.possible_receivers[fan_out["_id"]["ts"]])
            if fan_out["task"] == "push":
                assert fan_out["failed"] == sum(each["_id"]["ts"] == fan_out["_id"]["ts"] for each in failed_retries)
        for user in READERS:
            record = await self.stores.users.get(self.org, user)
            followers = {one for one, other in self.model.follows if other == user}
            followees = {other for one, other in self.model.follows if one == user}
            assert (record.follower_count, record.following_count) == (len(followers), len(followees))

    async def check_events(self) -> None:
        """Asserts that each subscriber got one removal event for each deleted post that was in the feed, and no other.

        A second removal event is allowed only if a stopped worker resumed: it may insert an item that was removed. A
        second arrival is allowed only after the reader's follow of the author ended. A worker that takes over the
        fan-out may then push the post to the feed again.
        """
        for reader in SUBSCRIBERS:
            events = await self.feed.events(home_stream(self.org, reader))
            arrived = [event.ref for event in events if event.kind == "PostArrived"]
            removed = [event.ref for event in events if event.kind == "PostRemoved"]
            repeated = {ref for ref in arrived if arrived.count(ref) > 1}
            assert {(reader, self.authors[ref]) for ref in repeated} <= self.ended_follows
            assert len(removed) - len(set(removed)) <= self.resumed_workers
            expected = {ref for ref in self.expected_removals[reader] if not self.may_be_trimmed(ref)}
            assert expected <= set(removed) <= self.deleted

    def may_be_trimmed(self, timestamp: int) -> bool:
        """Returns whether newer posts may have pushed a post out of feeds before workers removed it, without an event.

        Relays trim feeds at any time.
        """
        return sum(each > timestamp for each in self.authors) >= self.max_items


class SmallFeedMachine(FeedMachine):
    """Limits feeds to three posts. Deliveries of many posts and removals of many posts alternate."""

    max_items = 3

    @rule(authors=st.permutations(AUTHORS))
    def deliver_posts(self, authors: list[str]) -> None:
        for author in authors:
            for _ in range(3):
                self.post(author)
        self.run_workers()

    @rule(author=AUTHOR)
    def delete_newest(self, author: str) -> None:
        for timestamp in sorted(each for each, post_author in self.model.posts.items() if post_author == author)[-4:]:
            self.delete_post(timestamp)
        self.run_workers()

    def teardown(self) -> None:
        """Removes the newest posts of full feeds, so that `check` reads feeds that lack older posts."""
        self.deliver_posts(["ann", "cyd", "bob"])
        self.delete_newest("bob")
        super().teardown()


async def is_refused(work: Any) -> bool:
    try:
        await work
    except DomainError:
        return True
    return False
