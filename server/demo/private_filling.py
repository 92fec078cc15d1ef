"""Fills a product with the direct messages, the threads and the answers of the demo, through the public API."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from server.demo.cast import DemoUser, user
from server.demo.drawings import draw
from server.demo.private_talk import (
    QUOTE_OF_POST,
    REACTIONS_TO_POST,
    REPLIES_TO_POST,
    REPOST_BY,
    TALKS,
    THREAD_REPLIES,
    DemoPicture,
    DemoReply,
    DirectLine,
    DirectTalk,
)
from server.demo.uploads import DemoApi, becomes_ready, upload

START_TALK = "mutation StartTalk($input: StartConversationInput!) { startConversation(input: $input) { id } }"
TALK = """
query Talk($id: ID!) { messages(topicId: $id, latest: "now", limit: 20) { items { id attachments { id } } } }
"""
LAST_MESSAGE = 'query LastMessage($id: ID!) { messages(topicId: $id, latest: "now", limit: 1) { items { id } } }'
POST_MESSAGE = """
mutation PostDirectly($input: PostMessageInput!) { postMessage(input: $input) { id topicId timestamp } }
"""
MARK_READ = "mutation MarkOwnRead($id: ID!, $at: Timestamp!) { markRead(topicId: $id, timestamp: $at) { id } }"
ANSWER_POST = "mutation AnswerPost($input: CreatePostInput!) { createPost(input: $input) { id } }"
REACT_TO_POST = "mutation ReactToPost($id: ID!, $emoji: String!) { addPostReaction(postId: $id, emoji: $emoji) { id } }"
REPOST = "mutation RepostPost($id: ID!) { repost(postId: $id) { id } }"


async def answer_post(api: DemoApi, post_id: str) -> None:
    """Replies to a post, quotes and reposts it, and reacts to it."""
    for number, (handle, text) in enumerate(REPLIES_TO_POST):
        fields = {"text": text, "inReplyTo": post_id, "idempotencyKey": f"demo-post-reply-{number}"}
        await api.run(user(handle), ANSWER_POST, input=fields)
    quoting, text = QUOTE_OF_POST
    await api.run(
        user(quoting), ANSWER_POST, input={"text": text, "quoteOf": post_id, "idempotencyKey": "demo-post-quote"}
    )
    for handle, emoji in REACTIONS_TO_POST:
        await api.run(user(handle), REACT_TO_POST, id=post_id, emoji=emoji)
    await api.run(user(REPOST_BY), REPOST, id=post_id)


async def open_thread(api: DemoApi, topic_id: str) -> None:
    """Replies to the last message of a topic."""
    page = await api.run(user(THREAD_REPLIES[0].author), LAST_MESSAGE, id=topic_id)
    await _reply(api, topic_id, page["messages"]["items"][0]["id"], THREAD_REPLIES, "demo-thread")


async def start_talks(api: DemoApi) -> None:
    """Starts the conversations, and posts their messages in order."""
    for talk in TALKS:
        starter, *others = (user(handle) for handle in talk.people)
        fields = {"userIds": [each.id for each in others], "groupName": talk.name, "idempotencyKey": talk.key}
        started = await api.run(starter, START_TALK, input=fields)
        await _post_lines(api, talk, started["startConversation"]["id"])


async def _post_lines(api: DemoApi, talk: DirectTalk, topic_id: str) -> None:
    """Posts the lines and their thread.

    The line with pictures is left out if it exists, because each fill has its own uploads.
    """
    page = await api.run(user(talk.people[0]), TALK, id=topic_id)
    has_pictures = any(message["attachments"] for message in page["messages"]["items"])
    ids: dict[int | None, str | None] = {None: None}
    for number, line in enumerate(talk.lines):
        attachments = () if has_pictures else await _attachments(api, user(line.author), line.pictures)
        if line.pictures and not attachments:
            continue
        fields: dict[str, Any] = {"topicId": topic_id, "text": line.text, "idempotencyKey": f"{talk.key}-{number}"}
        fields |= {"attachments": attachments, "quotedMessageId": ids[line.quoted]}
        ids[number] = await _post(api, line, fields)
    if talk.thread is not None:
        await _reply(api, topic_id, ids[talk.thread.parent], talk.thread.replies, f"{talk.key}-thread")


async def _reply(api: DemoApi, topic_id: str, parent_id: str | None, replies: Sequence[DemoReply], key: str) -> None:
    """Replies to a message."""
    for number, reply in enumerate(replies):
        fields = {"text": reply.text, "idempotencyKey": f"{key}-{number}"}
        await _post(api, reply, {"topicId": topic_id, "replyTo": parent_id, **fields})


async def _post(api: DemoApi, line: DirectLine | DemoReply, fields: Mapping[str, Any]) -> str:
    """Posts a message, up to which its author has read then. Returns its id."""
    posted = (await api.run(user(line.author), POST_MESSAGE, input=fields))["postMessage"]
    await api.run(user(line.author), MARK_READ, id=posted["topicId"], at=posted["timestamp"])
    id_: str = posted["id"]
    return id_


async def _attachments(api: DemoApi, owner: DemoUser, pictures: Sequence[DemoPicture]) -> Sequence[Mapping[str, str]]:
    """Uploads pictures, if there are any, and returns them as attachments; none if no worker decodes them in time."""
    if not pictures:
        return ()
    files = await asyncio.to_thread(draw, [each.drawing for each in pictures])
    ids = [await upload(api, owner, each.file_name, file) for each, file in zip(pictures, files, strict=True)]
    for id_ in ids:
        if not await becomes_ready(api, owner, id_):
            return ()
    return [{"uploadId": id_, "altText": each.alt_text} for id_, each in zip(ids, pictures, strict=True)]
