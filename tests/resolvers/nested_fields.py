"""Fields below root fields that show something to some viewers only, for the table of docs/access.md."""

from collections.abc import Iterator, Mapping
from typing import Any

IN_PUBLIC_COMMUNITY = {
    "CommunityMember.mutedUntil": "communityMembers(communityId: $Community) { value: mutedUntil }",
    "Message.thread": 'topic(id: $Topic) { messages(latest: "now") { items { value: thread { id } } } }',
    "Post.fanOut": "post(id: $Post) { value: fanOut { state } }",
    "Thread.followed": 'topic(id: $Topic) { messages(latest: "now") { items { thread { value: followed } } } }',
    "Thread.lastReply": (
        'topic(id: $Topic) { messages(latest: "now") { items { thread { value: lastReply { id } } } } }'
    ),
    "Thread.lastRepliers": (
        'topic(id: $Topic) { messages(latest: "now") { items { thread { value: lastRepliers { id } } } } }'
    ),
    "Thread.unreadCount": 'topic(id: $Topic) { messages(latest: "now") { items { thread { value: unreadCount } } } }',
    "Topic.lastMessage": "topic(id: $Topic) { value: lastMessage { id } }",
    "Topic.messages": 'topic(id: $Topic) { value: messages(latest: "now") { items { id } } }',
    "Topic.pinnedMessages": "topic(id: $Topic) { value: pinnedMessages { id } }",
}
"""A selection for each field, which the test sends while the community is PUBLIC."""

IN_LISTED_COMMUNITY = {
    "Community.members": "community(id: $Community) { value: members { id } }",
    "Community.topics": "community(id: $Community) { value: topics { id } }",
}
"""A selection for each field, which the test sends while the community is LISTED."""

NESTED_FIELDS = IN_PUBLIC_COMMUNITY | IN_LISTED_COMMUNITY


def operation(selection: str) -> str:
    """Returns the query of a selection, with a variable for each id that it uses."""
    names = [name for name in ("Community", "Post", "Topic") if f"${name}" in selection]
    variables = ", ".join(f"${name}: ID!" for name in names)
    return f"query ({variables}) {{ {selection} }}"


def shows_a_value(data: Any) -> bool:
    """Returns whether any field `value` of an answer is neither null nor an empty list."""
    return any(value not in (None, []) for value in _values(data))


def _values(data: Any) -> Iterator[Any]:
    if isinstance(data, list):
        for each in data:
            yield from _values(each)
    elif isinstance(data, Mapping):
        for name, each in data.items():
            if name == "value":
                yield each
            else:
                yield from _values(each)
