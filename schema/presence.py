"""GraphQL types and root fields of presence: who is online, who is typing, and the switches that hide it."""

import strawberry
from strawberry import ID

import resolvers.chat.presence
import resolvers.chat.typing_people
from resolvers.limits.writes import WriteLimit
from schema.binding import NO_KEY, field, mutation, subscription
from schema.events import PresenceEvent, TypingEvent
from schema.identity import User


@strawberry.type(description="The switches of presence. Both are on by default.")
class PresenceSettings:
    shown: bool = strawberry.field(
        description="Whether others see if the viewer is online and typing. `setPresenceShown` changes it."
    )
    enabled: bool = strawberry.field(
        description="Whether people of the organization see presence at all. `setPresenceEnabled` changes it."
    )


@strawberry.type
class PresenceQuery:
    """Reads of presence."""

    online_user_ids: list[ID] | None = field(
        resolvers.chat.presence.online_user_ids,
        "Ids of those of the given people who are online, that is, have an open WebSocket. Left out are people who are "
        "offline, who have not joined the community or conversation, who hide their presence, and people with a block "
        "in either direction. Null: not known, because the organization has turned presence off, or because Redis "
        "does not answer. FORBIDDEN or NOT_FOUND unless the viewer has joined.",
    )
    typing_users: list[User] = field(
        resolvers.chat.typing_people.typing_users,
        "People other than the viewer who are typing in a topic or conversation now, at most 3. FORBIDDEN or NOT_FOUND "
        "unless the viewer has joined.",
    )
    presence_settings: PresenceSettings = field(
        resolvers.chat.presence.presence_settings, "The switches of presence of the viewer and of the organization."
    )


@strawberry.type
class PresenceMutation:
    """Signals and switches of presence."""

    set_typing: bool = mutation(
        resolvers.chat.typing_people.set_typing,
        "Signals that the viewer is typing in a topic or conversation. It ends 6 seconds later by itself, so clients "
        "repeat it every 3 seconds while the person types. Returns whether others may see it: false if presence is "
        "turned off, and if the viewer may not write there. A signal within a second after the last one is ignored. "
        "FORBIDDEN or NOT_FOUND unless the viewer has joined.",
        limit=WriteLimit.PRESENCE,
    )
    set_presence_shown: PresenceSettings = mutation(
        resolvers.chat.presence.set_presence_shown,
        "Shows or hides whether the viewer is online and typing. Idempotent.",
        limit=WriteLimit.PRESENCE,
        scope=NO_KEY,
    )
    set_presence_enabled: PresenceSettings = mutation(
        resolvers.chat.presence.set_presence_enabled,
        "Turns presence on or off for the organization. Idempotent. Needs the role ADMIN.",
        limit=WriteLimit.OPERATIONS,
        scope=NO_KEY,
    )


@strawberry.type
class PresenceSubscription:
    """Changes of presence."""

    presence_events: PresenceEvent = subscription(
        resolvers.chat.presence.presence_events,
        "Who is online among the given people of a community or conversation: at once, and again after each change, at "
        "most every 5 seconds. It cannot be resumed. FORBIDDEN or NOT_FOUND unless the viewer has joined.",
    )
    typing_events: TypingEvent = subscription(
        resolvers.chat.typing_people.typing_events,
        "People who start and stop typing in a topic or conversation. At most 3 people are shown at a time, and "
        "changes are sent at most twice a second. It cannot be resumed: after each `StreamReady`, read `typingUsers`. "
        "FORBIDDEN or NOT_FOUND unless the viewer has joined.",
    )
