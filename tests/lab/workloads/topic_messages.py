"""Operations on the messages of a topic, a conversation or a thread, as the checkers expect them in the history."""

from typing import Any

from tests.lab.session import WorkloadSession, micros, timestamp

POST = "mutation ($input: PostMessageInput!) { postMessage(input: $input) { id timestamp topicId } }"
PAGE = """query ($topic: ID!, $oldest: Timestamp, $latest: Timestamp, $limit: Int!, $inclusive: Boolean!) {
  messages(topicId: $topic, oldest: $oldest, latest: $latest, limit: $limit, inclusive: $inclusive) {
    items { timestamp text } hasOlder hasNewer } }"""


def new_message(topic: str, text: str, **more: str) -> dict[str, str]:
    """Returns the input of `postMessage`. The text is also the idempotency key."""
    return {"topicId": topic, "text": text, "idempotencyKey": text, **more}


def posted_message(message: dict[str, Any]) -> dict[str, Any]:
    """Returns a posted message as the history holds it."""
    return {"id": message["id"], "timestamp": micros(message["timestamp"]), "topic": message["topicId"]}


async def read_page(
    session: WorkloadSession,
    topic: str,
    oldest: int | None = None,
    latest: int | str | None = None,
    limit: int = 50,
    inclusive: bool = True,
    recorded_topic: str | None = None,
) -> tuple[str, Any]:
    """Reads a page, and records its bounds and its messages as microseconds and texts.

    `recorded_topic` replaces the id of the topic in the history.
    """
    bounds = {"oldest": oldest, "latest": latest}
    texts = {name: timestamp(value) if isinstance(value, int) else value for name, value in bounds.items()}
    arguments = {"topic": recorded_topic or topic, **bounds, "limit": limit, "inclusive": inclusive}
    variables = {"topic": topic, **texts, "limit": limit, "inclusive": inclusive}
    return await session.run("page", arguments, PAGE, _page, **variables)


async def read_all(session: WorkloadSession, topic: str, recorded_topic: str | None = None) -> None:
    """Reads all messages of a topic, page by page. Repeats each page until it is answered."""
    position, has_newer = 0, True
    while has_newer:
        outcome, page = await read_page(
            session, topic, oldest=position, limit=999, inclusive=False, recorded_topic=recorded_topic
        )
        if outcome == "ok":
            position = page["items"][-1][0] if page["items"] else position
            has_newer = page["newer"]


def _page(page: dict[str, Any]) -> dict[str, Any]:
    items = [[micros(item["timestamp"]), item["text"]] for item in page["items"]]
    return {"items": items, "older": page["hasOlder"], "newer": page["hasNewer"]}
