"""Fills a product with the direct messages, the threads and the answers of the demo, through the public API."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from server.demo.cast import DemoUser, user
from server.demo.pictures import draw
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

MAX_WAIT_S = 20.0
"""How long the fill waits for a worker to decode the pictures. Without one, it leaves their message out."""

POLL_S = 0.25

START_TALK = "mutation StartTalk($input: StartConversationInput!) { startConversation(input: $input) { id } }"
TALK = """
query Talk($id: ID!) { messages(topicId: $id, latest: "now", limit: 20) { items { id attachments { id } } } }
"""
LAST_MESSAGE = 'query LastMessage($id: ID!) { messages(topicId: $id, latest: "now", limit: 1) { items { id } } }'
POST_MESSAGE = """
mutation PostDirectly($input: PostMessageInput!) { postMessage(input: $input) { id topicId timestamp } }
"""
MARK_READ = "mutation MarkOwnRead($id: ID!, $at: Timestamp!) { markRead(topicId: $id, timestamp: $at) { id } }"
CREATE_UPLOAD = "mutation CreateUpload($input: CreateUploadInput!) { createUpload(input: $input) { id url } }"
UPLOAD_STATE = "query UploadState($id: ID!) { upload(id: $id) { state } }"
ANSWER_POST = "mutation AnswerPost($input: CreatePostInput!) { createPost(input: $input) { id } }"
REACT_TO_POST = "mutation ReactToPost($id: ID!, $emoji: String!) { addPostReaction(postId: $id, emoji: $emoji) { id } }"
REPOST = "mutation RepostPost($id: ID!) { repost(postId: $id) { id } }"


class DemoApi(Protocol):
    """Runs operations and uploads in the name of demo users."""

    async def run(self, demo_user: DemoUser, document: str, **variables: object) -> dict[str, Any]:
        """Returns the data of one operation."""
        ...

    async def upload(self, demo_user: DemoUser, path: str, data: bytes) -> None:
        """Sends the bytes of an upload."""
        ...


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
    ids = [await _upload(api, owner, each) for each in pictures]
    try:
        async with asyncio.timeout(MAX_WAIT_S):
            for id_ in ids:
                await _wait_until_ready(api, owner, id_)
    except TimeoutError:
        return ()
    return [{"uploadId": id_, "altText": each.alt_text} for id_, each in zip(ids, pictures, strict=True)]


async def _upload(api: DemoApi, owner: DemoUser, picture: DemoPicture) -> str:
    data = await asyncio.to_thread(draw, picture.landscape)
    created = await api.run(owner, CREATE_UPLOAD, input={"fileName": picture.file_name, "size": len(data)})
    await api.upload(owner, created["createUpload"]["url"], data)
    id_: str = created["createUpload"]["id"]
    return id_


async def _wait_until_ready(api: DemoApi, owner: DemoUser, id_: str) -> None:
    while True:
        upload = (await api.run(owner, UPLOAD_STATE, id=id_))["upload"]
        if upload["state"] == "READY":
            return
        await asyncio.sleep(POLL_S)
