"""Typical operations of the screens of a web client on the demo: reads of every area, and writes of chat.

The documents select less than the current web client does.
"""

from dataclasses import dataclass, field
from typing import Any

MESSAGE = """id timestamp topicId author { id handle name } text stamp { id name imageUrl } mentions { id handle name }
  reactions { emoji count reacted } linkPreview { url title description imageUrl siteName } editedAt deletedAt"""
TOPIC = "id title lastActivity unreadCount lastMessage { id text author { id name } stamp { id name } }"
POST = "id timestamp author { id handle name } text mediaUrls mentions { id handle } linkPreview { url title }"
SCHEDULED = """id author { id handle name } text media { url altText kind } dueAt timeZone maxLatenessS state revision
  editable publications { id state target { __typename ... on TopicTarget { topic { id title } } } }"""
JOB = """id timestamp name scenario state createdAt startAt window { start end timeZone weekdays } estimatedEndAt
  rowErrorCount
  progress { total queued active completed failed unknown skipped cancelled outcomes { outcome count } }"""
TASK = "id jobId row phoneNumber variables { name value } state outcome attempts startedAt endedAt error"
DOMAIN = "id domain success softBounce hardBounce blocked verdict { rule detail }"

FIRST_TOPIC = """{ communities(joined: true, limit: 1) { id topics(limit: 1) { id lastMessage { id timestamp } } } }"""
FIRST_CALL_JOB = '{ callJobs(latest: "now", limit: 1) { items { id } } }'


@dataclass(frozen=True, slots=True)
class DemoOperation:
    """An operation of a demo user: the user's handle, the document and its variables."""

    handle: str
    text: str
    variables: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DemoIds:
    """Ids in the demo: a community, one of its topics, the topic's last message and its timestamp, and a call job."""

    community: str
    topic: str
    message: str
    timestamp: str
    job: str


def operations(ids: DemoIds) -> dict[str, DemoOperation]:
    """Returns the operations by name. Mutations come last."""
    topic, message = {"topic": ids.topic}, {"message": ids.message}
    return {
        "sidebar": DemoOperation(
            "hana", f"{{ communities(joined: true, limit: 50) {{ id name topics(limit: 31) {{ {TOPIC} }} }} }}"
        ),
        "other communities": DemoOperation(
            "emma", "{ communities(joined: false, limit: 50) { id name description memberCount joined } }"
        ),
        "more topics": DemoOperation(
            "hana",
            f"""query ($id: ID!) {{
              communityTopics(communityId: $id, latest: "now", limit: 31) {{ items {{ {TOPIC} }} }} }}""",
            {"id": ids.community},
        ),
        "trending": DemoOperation(
            "hana",
            "{ trendingTopics(limit: 5) { messagesPerMinute topic { id title community { id name joined } } } }",
        ),
        "a topic's head": DemoOperation(
            "hana",
            "query ($topic: ID!) { topic(id: $topic) { id title readUpTo unreadCount community { name joined } } }",
            topic,
        ),
        "a page of a topic": DemoOperation(
            "hana",
            f"""query ($topic: ID!) {{
              messages(topicId: $topic, latest: "now", limit: 50) {{ hasOlder hasNewer items {{ {MESSAGE} }} }} }}""",
            topic,
        ),
        "around a message": DemoOperation(
            "hana",
            f"""query ($topic: ID!, $at: Timestamp!) {{
              messagesAround(topicId: $topic, timestamp: $at, limit: 60) {{ items {{ {MESSAGE} }} }} }}""",
            topic | {"at": ids.timestamp},
        ),
        "one message": DemoOperation(
            "hana", f"query ($message: ID!) {{ message(id: $message) {{ {MESSAGE} }} }}", message
        ),
        "who reacted": DemoOperation(
            "hana",
            "query ($message: ID!) { message(id: $message) { reactions { emoji users(limit: 50) { handle } } } }",
            message,
        ),
        "stamps": DemoOperation("hana", "{ stamps { id name imageUrl } }"),
        "home feed": DemoOperation("hana", f'{{ homeFeed(latest: "now", limit: 30) {{ state items {{ {POST} }} }} }}'),
        "local feed": DemoOperation("hana", f'{{ localFeed(latest: "now", limit: 30) {{ items {{ {POST} }} }} }}'),
        "notifications": DemoOperation(
            "hana",
            """{ notifications(latest: "now", limit: 30) {
              items { id kind actor { id name } message { id text } post { id text } } } }""",
        ),
        "viewer": DemoOperation("hana", "{ viewer { id handle name followerCount followingCount } }"),
        "scheduled posts": DemoOperation(
            "hana",
            f"""{{ scheduledPosts(oldest: "0000000000.000000", limit: 100) {{ hasNewer items {{ {SCHEDULED} }} }} }}""",
        ),
        "accounts": DemoOperation("hana", "{ connectedAccounts { id network name connectedAt disconnectedAt } }"),
        "call jobs": DemoOperation("ken", f'{{ callJobs(latest: "now", limit: 30) {{ items {{ {JOB} }} }} }}'),
        "a call job": DemoOperation("ken", f"query ($job: ID!) {{ callJob(id: $job) {{ {JOB} }} }}", {"job": ids.job}),
        "call tasks": DemoOperation(
            "ken",
            f"query ($job: ID!) {{ callJob(id: $job) {{ tasks(afterRow: 0, limit: 100) {{ {TASK} }} }} }}",
            {"job": ids.job},
        ),
        "call limits": DemoOperation("ken", "{ callLimits { id concurrentCalls callsPerSecond activeCalls } }"),
        "an address": DemoOperation(
            "ken",
            f"""{{ addressBook(addresses: ["ann@example.org"]) {{
              address blocked verdict {{ rule detail }} success softBounce hardBounce domain {{ {DOMAIN} }} }} }}""",
        ),
        "a domain": DemoOperation("ken", f'{{ domainStandings(domains: ["example.org"]) {{ {DOMAIN} }} }}'),
        "bounce rates": DemoOperation(
            "ken",
            '{ bounceRates(from: "2026-01-01T00:00:00Z", to: "2026-03-01T00:00:00Z") { day sent bounced rate } }',
        ),
        "react": DemoOperation(
            "hana",
            f'mutation ($message: ID!) {{ addReaction(messageId: $message, emoji: "👍") {{ {MESSAGE} }} }}',
            message,
        ),
        "mark read": DemoOperation(
            "hana",
            "mutation ($topic: ID!, $at: Timestamp!) { markRead(topicId: $topic, timestamp: $at) { id unreadCount } }",
            topic | {"at": ids.timestamp},
        ),
        "post a message": DemoOperation(
            "hana",
            f'mutation ($topic: ID!) {{ postMessage(input: {{ topicId: $topic, text: "Smoke" }}) {{ {MESSAGE} }} }}',
            topic,
        ),
    }
