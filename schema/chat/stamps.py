"""GraphQL types of stamps and packs of stamps."""

from datetime import datetime

import strawberry
from strawberry import ID

import resolvers.chat.stamp_ownerships
from schema.binding import field
from schema.identity import User
from storage.chat.stamps.rules import StampPackAvailability, StampRuleKind


@strawberry.type(description="A picture that a message can consist of: one of the program, or of the organization.")
class Stamp:
    id: ID = strawberry.field(description="Value for `stampId` in `postMessage`.")
    name: str = strawberry.field(
        description="Name of the picture: in English for one of the program, and as the administrator named it for one "
        "of the organization."
    )
    image_url: str = strawberry.field(
        description="Path of the picture, relative to the server's origin. The picture of a stamp of the organization "
        "needs the viewer's credentials, and leads to nothing after the stamp was removed."
    )
    thumbnail_url: str = strawberry.field(
        description="Path of the picture in at most 64 pixels, for reactions and lists. For a stamp of the program, "
        "the same as `imageUrl`."
    )
    emoji: str | None = strawberry.field(
        description="The name between colons, such as `:lit:`, with which `addReaction` adds this stamp as a reaction. "
        "Null for a stamp of the program."
    )


@strawberry.type(description="What people do to earn a pack.")
class StampRule:
    kind: StampRuleKind = strawberry.field(description="What is counted.")
    threshold: int = strawberry.field(description="The count from which on a person owns the pack.")


@strawberry.type(description="Stamps that administrators have uploaded for the organization.")
class StampPack:
    id: ID = strawberry.field(description="Unique identifier. Treat as an opaque string.")
    name: str = strawberry.field(description="Name of the pack, unique in the organization.")
    stamps: list[Stamp] = strawberry.field(description="Stamps of the pack, the earliest first; at most 50.")
    availability: StampPackAvailability = strawberry.field(description="Who may use the pack.")
    rule: StampRule | None = strawberry.field(
        description="What people do to earn the pack; null unless its availability is EARNED."
    )
    owned: bool = field(
        resolvers.chat.stamp_ownerships.owned,
        "Whether the viewer may post the stamps of the pack and react with them.",
        batch_resolver=resolvers.chat.stamp_ownerships.owned_of_many,
    )
    progress: int | None = field(
        resolvers.chat.stamp_ownerships.progress,
        "The viewer's count for the rule, at most its threshold. The threshold if the viewer owns the pack; null "
        "without a rule. A viewer who reaches the threshold gets the pack usually within 20 seconds, otherwise "
        "within about a day. For MEMBER_DAYS it always takes up to a day.",
        batch_resolver=resolvers.chat.stamp_ownerships.progress_of_many,
    )


@strawberry.type(description="A pack that a person owns.")
class StampPackOwnership:
    pack: StampPack | None = field(
        resolvers.chat.stamp_ownerships.owned_pack,
        "The pack; null if it was removed meanwhile.",
        batch_resolver=resolvers.chat.stamp_ownerships.owned_packs,
    )
    owned_since: datetime = strawberry.field(description="When the person got the pack.")
    giver: User | None = field(
        resolvers.chat.stamp_ownerships.giver,
        "User who gave the pack; null if it was earned.",
        batch_resolver=resolvers.chat.stamp_ownerships.givers,
    )
