"""The direct messages of the demo as the people of a conversation see them."""

from typing import Any

from server.demo.private_talk import DirectTalk

TALKS_QUERY = """
fragment Talks on ConversationTimeline { items { name topic { unreadCount messages(oldest: "0.000000", limit: 10) {
  items { text author { handle } quote { message { text } } thread { replyCount followed unreadCount } } } } } }
{ talks: conversations(latest: "now", limit: 5) { ...Talks }
  requests: conversations(state: REQUESTED, latest: "now", limit: 2) { ...Talks }
  followedThreads(latest: "now", limit: 5) { items {
    thread { unreadCount lastMessage { text } } parentTopic { title } parentMessage { text } } } }
"""


def expected_talk(talk: DirectTalk) -> tuple[str, list[tuple[str, str, str | None]]]:
    """Returns the name of a conversation, and the author, text and quoted text of its lines without pictures."""
    return talk.name, [
        (line.author, line.text, None if line.quoted is None else talk.lines[line.quoted].text)
        for line in talk.lines
        if not line.pictures
    ]


def shown_talk(item: dict[str, Any]) -> tuple[str, list[tuple[str, str, str | None]]]:
    """Returns the name of a conversation as it is shown, and the author, text and quoted text of its messages."""
    return item["name"], [
        (each["author"]["handle"], each["text"], each["quote"] and each["quote"]["message"]["text"])
        for each in item["topic"]["messages"]["items"]
    ]


def shown_threads(shown: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the threads of all conversations."""
    messages = [each for talk in shown["talks"]["items"] for each in talk["topic"]["messages"]["items"]]
    return [each["thread"] for each in messages if each["thread"]]
