"""Use cases of invitations: administrators create and revoke them, and people who are signed in accept them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

import strawberry
from strawberry import ID, UNSET, Parent

from resolvers.access import find_visible_community, require_moderator, require_role, require_signed_in
from resolvers.arguments import After, ListLimit, checked_limit, text_or_none
from resolvers.context import Info
from resolvers.idempotency import KEY_DESCRIPTION, input_key
from storage.chat.records import Community
from storage.errors import BadUserInput
from storage.identity.accounts.invitations import Invitation, NewInvitation
from storage.identity.accounts.local_accounts import MailLanguage
from storage.identity.records import User
from storage.identity.roles import Role
from storage.mail.addresses import normalize

MAX_USES = 1000
MAX_HOURS = 24 * 90
MAX_TOKEN_CHARS = 200


strawberry.enum(MailLanguage, description="Language of a mail. EN: English. JA: Japanese.", name="MailLanguage")


@strawberry.input(description="A new invitation.")
class CreateInvitationInput:
    role: Role = strawberry.field(
        default=Role.MEMBER, description="Role that accepting grants: MEMBER, OPERATOR or ADMIN. Nobody loses a role."
    )
    community_id: ID | None = strawberry.field(
        default=UNSET, description="Id of a community that people join by accepting. Omitted or null: none."
    )
    email: str | None = strawberry.field(
        default=UNSET,
        description="Mail address of the only person who may accept. The link is mailed there. Omitted or null: "
        "anybody who has the link may accept.",
    )
    max_uses: int = strawberry.field(
        default=1, description=f"How many people may accept, 1 to {MAX_USES}; with `email` always 1."
    )
    expires_in_hours: int = strawberry.field(
        default=168, description=f"Hours until nobody can accept any more, 1 to {MAX_HOURS}."
    )
    language: MailLanguage = strawberry.field(default=MailLanguage.EN, description="Language of the mail.")
    idempotency_key: str | None = strawberry.field(default=UNSET, description=KEY_DESCRIPTION)


@dataclass(frozen=True, slots=True)
class InvitationLink:
    """A new invitation, and its link. `url` is None for a request that repeats an idempotency key."""

    invitation: Invitation
    url: str | None


async def invitations(info: Info, after: After = UNSET, limit: ListLimit = 50) -> list[Invitation]:
    """Lists invitations, the newest first."""
    viewer = require_role(info, Role.ADMIN)
    return await info.context.stores.invitations.list_invitations(
        viewer.organization_id, text_or_none(after), checked_limit(limit)
    )


async def create_invitation(
    info: Info, input: Annotated[CreateInvitationInput, strawberry.argument(description="The invitation.")]
) -> InvitationLink:
    """Creates an invitation."""
    viewer = require_role(info, Role.ADMIN)
    key = input_key(viewer, "createInvitation", input)
    community_id = text_or_none(input.community_id)
    if community_id is not None:
        await require_moderator(info, community_id)
    created = await info.context.stores.invitations.create(
        info.context.actor, _new_invitation(input, community_id), key
    )
    url = None if created.token is None else f"{info.context.base_url}/#invitation={created.token}"
    return InvitationLink(created.invitation, url)


def _new_invitation(input: CreateInvitationInput, community_id: str | None) -> NewInvitation:
    if input.role is Role.SERVICE:
        raise BadUserInput("role", "MEMBER, OPERATOR or ADMIN; a service signs in with a key of its own")
    if not 1 <= input.expires_in_hours <= MAX_HOURS:
        raise BadUserInput("expiresInHours", f"a number from 1 to {MAX_HOURS}")
    address = _address(text_or_none(input.email))
    max_uses = 1 if address is not None else MAX_USES
    if not 1 <= input.max_uses <= max_uses:
        raise BadUserInput("maxUses", "1, because the invitation has an email" if address else f"1 to {MAX_USES}")
    lifetime = timedelta(hours=input.expires_in_hours)
    return NewInvitation(input.role, community_id, address, input.max_uses, lifetime, input.language)


def _address(email: str | None) -> str | None:
    if email is None:
        return None
    address = normalize(email.strip())
    if address is None:
        raise BadUserInput("email", "a mail address")
    return address.text


async def revoke_invitation(
    info: Info, id: Annotated[ID, strawberry.argument(description="Id of the invitation.")]
) -> Invitation:
    """Revokes an invitation."""
    require_role(info, Role.ADMIN)
    return await info.context.stores.invitations.revoke(info.context.actor, id)


async def accept_invitation(
    info: Info,
    token: Annotated[str, strawberry.argument(description="The part of the invitation's link after `#invitation=`.")],
) -> User:
    """Accepts an invitation for the viewer."""
    viewer = require_signed_in(info)
    if not 1 <= len(token) <= MAX_TOKEN_CHARS:
        raise BadUserInput("token", f"1 to {MAX_TOKEN_CHARS} characters")
    return await info.context.stores.invitations.accept(info.context.actor, token, viewer)


async def creator(root: Parent[Invitation], info: Info) -> User | None:
    """Returns the user who created the invitation."""
    return (await creators([root], info))[0]


async def creators(invitations: Sequence[Invitation], info: Info) -> list[User | None]:
    """Returns the user who created each invitation."""
    if not invitations:
        return []
    ids = [each.creator_id for each in invitations]
    return await info.context.stores.users.find_or_none(invitations[0].organization_id, ids)


async def community(root: Parent[Invitation], info: Info) -> Community | None:
    """Returns the community that people join by accepting; None for none, and for one that the viewer may not see."""
    return None if root.community_id is None else await find_visible_community(info, root.community_id)


async def communities(invitations: Sequence[Invitation], info: Info) -> list[Community | None]:
    """Returns the community of each invitation, as `community` does."""
    return await asyncio.gather(*(community(each, info) for each in invitations))


async def community_id(root: Parent[Invitation], info: Info) -> str | None:
    """Returns the id of the community that `community` returns."""
    return (await community_ids([root], info))[0]


async def community_ids(invitations: Sequence[Invitation], info: Info) -> list[str | None]:
    """Returns the id of the community of each invitation, as `community_id` does."""
    return [None if each is None else each.id for each in await communities(invitations, info)]
