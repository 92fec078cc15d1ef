"""Stamps: the catalogue of the program, the packs of the organization, and the reactions that are stamps."""

import re
from typing import Annotated

import strawberry
from strawberry import ID, UNSET

from resolvers.access import require_member, require_role
from resolvers.arguments import checked_emoji, checked_text
from resolvers.context import Info
from storage.chat.stamps.catalogue import STAMPS, Stamp, find_stamp
from storage.chat.stamps.packs import StampPack
from storage.chat.stamps.rules import StampPackAvailability, StampRule, StampRuleKind
from storage.errors import BadUserInput, Forbidden, NotFound
from storage.identity.roles import Role

MAX_PACK_NAME_CHARS = 100
MAX_STAMP_NAME_CHARS = 32
MAX_THRESHOLD = 1_000
MAX_THRESHOLD_DAYS = 3_650
_STAMP_NAME = re.compile(rf"[a-z0-9_-]{{2,{MAX_STAMP_NAME_CHARS}}}")
_REACTION = re.compile(r":(.+):", re.DOTALL)

strawberry.enum(
    StampPackAvailability,
    description="Who may post the stamps of a pack and react with them. EARNED: people who have reached the threshold "
    "of its rule. GIVEN: people to whom a moderator gave it.",
)
strawberry.enum(
    StampRuleKind,
    description="What a rule counts. MESSAGES_POSTED and POSTS_CREATED: undeleted messages, also in threads, and "
    "undeleted posts without reposts. REACTIONS_RECEIVED: reactions of other people to the person's messages and "
    "posts. MEMBER_DAYS: whole days since the first sign-in. Messages in conversations, and reactions to them, do not "
    "count.",
)

PackId = Annotated[ID, strawberry.argument(description="Id of the pack.")]


@strawberry.input(description="A picture for a pack, and its name.")
class AddStampInput:
    pack_id: ID = strawberry.field(description="Id of the pack.")
    name: str = strawberry.field(
        description=f"Name, unique in the organization: 2 to {MAX_STAMP_NAME_CHARS} letters of a to z, digits, `_` and "
        "`-`. Capital letters become small ones."
    )
    upload_id: ID = strawberry.field(description="Id of an upload of the viewer with the purpose STAMP that is READY.")


@strawberry.input(description="What people do to earn a pack.", name="StampRuleInput")
class StampRuleInput:
    kind: StampRuleKind = strawberry.field(description="What is counted.")
    threshold: int = strawberry.field(
        description=f"The count from which on a person owns the pack, 1 to {MAX_THRESHOLD}. For MEMBER_DAYS, 1 to "
        f"{MAX_THRESHOLD_DAYS}."
    )


async def stamps() -> list[Stamp]:
    """Returns the stamps of the program."""
    return list(STAMPS)


async def stamp_packs(info: Info) -> list[StampPack]:
    """Returns the packs of the viewer's organization."""
    return await info.context.stores.stamp_packs.list_packs(require_member(info).organization_id)


async def create_stamp_pack(
    info: Info,
    name: Annotated[
        str, strawberry.argument(description=f"Name of the pack for people, 1 to {MAX_PACK_NAME_CHARS} characters.")
    ],
) -> StampPack:
    """Creates an empty pack."""
    require_role(info, Role.ADMIN)
    checked = checked_text("name", name, 1, MAX_PACK_NAME_CHARS)
    return await info.context.stores.stamp_packs.create(info.context.actor, checked)


async def remove_stamp_pack(info: Info, pack_id: PackId) -> StampPack:
    """Removes a pack with its stamps."""
    require_role(info, Role.ADMIN)
    return await info.context.stores.stamp_packs.remove(info.context.actor, pack_id)


async def set_stamp_pack_availability(
    info: Info,
    pack_id: PackId,
    availability: Annotated[StampPackAvailability, strawberry.argument(description="Who may use the pack.")],
    rule: Annotated[
        StampRuleInput | None,
        strawberry.argument(description="What people do to earn the pack. Needed for EARNED, otherwise omitted."),
    ] = UNSET,
) -> StampPack:
    """Decides who may use a pack."""
    require_role(info, Role.ADMIN)
    checked = _checked_rule(rule) if isinstance(rule, StampRuleInput) else None
    if (checked is not None) is not (availability is StampPackAvailability.EARNED):
        raise BadUserInput("rule", "a rule for EARNED, and none for EVERYONE and GIVEN")
    packs = info.context.stores.stamp_packs
    return await packs.set_availability(info.context.actor, pack_id, availability, checked)


def _checked_rule(rule: StampRuleInput) -> StampRule:
    highest = MAX_THRESHOLD_DAYS if rule.kind is StampRuleKind.MEMBER_DAYS else MAX_THRESHOLD
    if not 1 <= rule.threshold <= highest:
        raise BadUserInput("threshold", f"1 to {highest}")
    return StampRule(rule.kind, rule.threshold)


async def add_stamp(
    info: Info, input: Annotated[AddStampInput, strawberry.argument(description="Pack, picture and name.")]
) -> StampPack:
    """Adds a picture to a pack."""
    require_role(info, Role.ADMIN)
    name = input.name.lower()
    if not _STAMP_NAME.fullmatch(name):
        raise BadUserInput("name", f"2 to {MAX_STAMP_NAME_CHARS} letters of a to z, digits, _ and -")
    return await info.context.stores.stamp_packs.add_stamp(info.context.actor, input.pack_id, name, input.upload_id)


async def remove_stamp(
    info: Info, pack_id: PackId, stamp_name: Annotated[str, strawberry.argument(description="Name of the stamp.")]
) -> StampPack:
    """Removes a stamp from a pack."""
    require_role(info, Role.ADMIN)
    name = checked_text("stampName", stamp_name, 1, MAX_STAMP_NAME_CHARS)
    return await info.context.stores.stamp_packs.remove_stamp(info.context.actor, pack_id, name.lower())


async def checked_stamp(info: Info, stamp_id: str | None) -> str | None:
    """Returns the id of a stamp that the viewer may post, or None.

    Raises: BadUserInput; Forbidden for a stamp of a pack that the viewer does not own.
    """
    if stamp_id is None:
        return None
    stamp = find_stamp(stamp_id)
    if stamp is not None and stamp.emoji is not None:
        found = await info.context.stores.stamp_packs.find_by_stamp(require_member(info).organization_id, stamp.name)
        stamp = await _usable_stamp(info, *found) if found is not None and found[1] == stamp else None
    if stamp is None:
        raise BadUserInput("stampId", "the id of one of `stamps` or of a stamp of `stampPacks`")
    return stamp_id


async def checked_reaction(info: Info, value: str) -> str:
    """Returns the stored form of an emoji of Unicode, or of the name of a stamp between colons.

    Raises: BadUserInput; NotFound for a stamp that the organization does not have; Forbidden for a stamp of a pack that
    the viewer does not own.
    """
    match = _REACTION.fullmatch(value)
    if match is None:
        return checked_emoji(value)
    name = match.group(1).lower()
    if not _STAMP_NAME.fullmatch(name):
        raise BadUserInput("emoji", "exactly one emoji, or the name of a stamp of the organization between colons")
    found = await info.context.stores.stamp_packs.find_by_stamp(require_member(info).organization_id, name)
    if found is None:
        raise NotFound("stamp", name)
    await _usable_stamp(info, *found)
    return f":{name}:"


async def _usable_stamp(info: Info, pack: StampPack, stamp: Stamp) -> Stamp:
    """Returns the stamp. Raises: Forbidden unless the viewer may use the pack."""
    if await info.context.stores.stamp_ownerships.may_use(require_member(info).key, pack):
        return stamp
    how = "Ask a moderator to give it to you." if pack.rule is None else f"{_how_to_earn(pack.rule)} to earn it."
    raise Forbidden(f"You do not own the pack of stamps {pack.name}. {how}", stampPackId=pack.id)


def _how_to_earn(rule: StampRule) -> str:
    return _HOW_TO_EARN[rule.kind].format(threshold=rule.threshold, s="" if rule.threshold == 1 else "s")


_HOW_TO_EARN = {
    StampRuleKind.MESSAGES_POSTED: "Post {threshold} message{s}",
    StampRuleKind.POSTS_CREATED: "Create {threshold} post{s}",
    StampRuleKind.REACTIONS_RECEIVED: "Receive {threshold} reaction{s} to your messages and posts",
    StampRuleKind.MEMBER_DAYS: "Wait until {threshold} day{s} after your first sign-in",
}
