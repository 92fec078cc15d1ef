"""Packs of stamps that people own: giving packs, taking them back, and the viewer's packs and progress."""

from collections.abc import Sequence
from typing import Annotated

import strawberry
from strawberry import ID, UNSET, Parent

from resolvers.access import require_member, require_moderator, require_role
from resolvers.arguments import text_or_none
from resolvers.chat.moderation import UserId
from resolvers.chat.stamps import PackId
from resolvers.context import Info
from storage.chat.roles import Moderator
from storage.chat.stamps.ownerships import StampPackGiver, StampPackOwnership
from storage.chat.stamps.packs import StampPack
from storage.chat.stamps.rules import StampPackAvailability
from storage.identity.records import User
from storage.identity.roles import Role


async def give_stamp_pack(
    info: Info,
    pack_id: PackId,
    user_id: UserId,
    community_id: Annotated[
        ID | None,
        strawberry.argument(
            description="Id of a community in which the viewer is a moderator or owner, and the person a member. An "
            "ADMIN may omit it."
        ),
    ] = UNSET,
) -> StampPack:
    """Gives a pack to a person."""
    giver, stores = await _giver(info, text_or_none(community_id)), info.context.stores
    organization_id = require_member(info).organization_id
    pack = await stores.stamp_packs.get(organization_id, pack_id)
    person = await stores.users.get(organization_id, user_id)
    await stores.stamp_ownerships.give(person.key, pack, giver)
    return pack


async def _giver(info: Info, community_id: str | None) -> StampPackGiver:
    """Returns the viewer as a giver of packs. Raises: NotFound, Forbidden."""
    if community_id is None:
        return StampPackGiver(Moderator(require_role(info, Role.ADMIN).id, True, info.context.actor))
    community, moderator = await require_moderator(info, community_id)
    return StampPackGiver(moderator, community.id)


async def take_back_stamp_pack(info: Info, pack_id: PackId, user_id: UserId) -> StampPack:
    """Takes a pack back from a person."""
    organization_id, stores = require_role(info, Role.ADMIN).organization_id, info.context.stores
    pack = await stores.stamp_packs.get(organization_id, pack_id)
    person = await stores.users.get(organization_id, user_id)
    await stores.stamp_ownerships.take_back(info.context.actor, person.key, pack)
    return pack


async def stamp_pack_ownerships(info: Info, user_id: UserId) -> list[StampPackOwnership]:
    """Returns the packs that a person owns, without removed packs."""
    organization_id, stores = require_role(info, Role.ADMIN).organization_id, info.context.stores
    person = await stores.users.get(organization_id, user_id)
    existing = {pack.id for pack in await stores.stamp_packs.list_packs(organization_id)}
    owned = await stores.stamp_ownerships.owned_packs(person.key)
    return [each for each in owned if each.pack_id in existing]


async def owned_pack(root: Parent[StampPackOwnership], info: Info) -> StampPack | None:
    """Returns the pack of an ownership, or None if it was removed."""
    return (await owned_packs([root], info))[0]


async def owned_packs(ownerships: Sequence[StampPackOwnership], info: Info) -> list[StampPack | None]:
    """Returns the pack of each ownership, or None."""
    packs = await info.context.stores.stamp_packs.list_packs(require_member(info).organization_id)
    by_id = {pack.id: pack for pack in packs}
    return [by_id.get(each.pack_id) for each in ownerships]


async def giver(root: Parent[StampPackOwnership], info: Info) -> User | None:
    """Returns the user who gave the pack, or None."""
    return (await givers([root], info))[0]


async def givers(ownerships: Sequence[StampPackOwnership], info: Info) -> list[User | None]:
    """Returns the user who gave each pack, or None."""
    organization_id = require_member(info).organization_id
    ids = [[] if each.giver_id is None else [each.giver_id] for each in ownerships]
    found = await info.context.stores.users.find_each(organization_id, ids)
    return [users[0] if users else None for users in found]


async def owned(root: Parent[StampPack], info: Info) -> bool:
    """Returns whether the viewer may use the pack."""
    return (await owned_of_many([root], info))[0]


async def owned_of_many(packs: Sequence[StampPack], info: Info) -> list[bool]:
    """Returns for each pack whether the viewer may use it."""
    owned_ids = await _owned_ids(info)
    return [pack.availability is StampPackAvailability.EVERYONE or pack.id in owned_ids for pack in packs]


async def progress(root: Parent[StampPack], info: Info) -> int | None:
    """Returns the viewer's count for the rule of a pack, or None."""
    return (await progress_of_many([root], info))[0]


async def progress_of_many(packs: Sequence[StampPack], info: Info) -> list[int | None]:
    """Returns the viewer's count for the rule of each pack, or None."""
    evaluation, viewer = info.context.stores.stamp_rule_evaluation, require_member(info)
    return await evaluation.progress(viewer.key, packs, await _owned_ids(info))


async def _owned_ids(info: Info) -> set[str]:
    """Returns the ids of the packs that the viewer owns."""
    owned_packs = await info.context.stores.stamp_ownerships.owned_packs(require_member(info).key)
    return {each.pack_id for each in owned_packs}
