"""GraphQL types and root fields of invitations."""

from datetime import datetime

import strawberry
from strawberry import ID

import resolvers.administration.invitations
from resolvers.limits.writes import WriteLimit
from schema.binding import field, mutation
from schema.chat.communities import Community
from schema.identity import User
from storage.identity.accounts.invitations import InvitationState
from storage.identity.roles import Role

strawberry.enum(
    InvitationState,
    description="Whether an invitation can be accepted, or why not. OPEN: it can be. USED_UP: as many people as "
    "allowed have accepted. EXPIRED: its time is over. REVOKED: an administrator made it invalid, or the only person "
    "who might accept was erased.",
)


@strawberry.type(description="An invitation to the organization. It is deleted 30 days after it has expired.")
class Invitation:
    id: ID = strawberry.field(description="Id of the invitation. It is not the secret part of the link.")
    state: InvitationState = strawberry.field(description="Whether the invitation can be accepted, or why not.")
    role: Role = strawberry.field(description="Role that accepting grants.")
    community_id: ID | None = field(
        resolvers.administration.invitations.community_id,
        "Id of the community that people join by accepting; null for none, and for one that the viewer may not see.",
        batch_resolver=resolvers.administration.invitations.community_ids,
    )
    community: Community | None = field(
        resolvers.administration.invitations.community,
        "Community that people join by accepting; null for none, and for one that the viewer may not see.",
        batch_resolver=resolvers.administration.invitations.communities,
    )
    address: str | None = strawberry.field(
        name="email",
        description="Mail address of the only person who may accept; null if anybody with the link may. Empty after "
        "the erasure of the person.",
    )
    max_uses: int = strawberry.field(description="How many people may accept.")
    uses: int = strawberry.field(description="How many people have accepted.")
    creator_id: ID = strawberry.field(description="Id of the user who created the invitation.")
    creator: User | None = field(
        resolvers.administration.invitations.creator,
        "User who created the invitation. Null if the user does not exist any more.",
        batch_resolver=resolvers.administration.invitations.creators,
    )
    created_at: datetime = strawberry.field(description="When the invitation was created.")
    expires_at: datetime = strawberry.field(description="When nobody can accept any more.")
    revoked_at: datetime | None = strawberry.field(
        description="When an administrator revoked the invitation; null if nobody has."
    )


@strawberry.type(description="A new invitation, and its link.")
class InvitationLink:
    invitation: Invitation = strawberry.field(description="The invitation.")
    url: str | None = strawberry.field(
        description="The link by which people accept. It is shown only here and cannot be read again. Null when the "
        "mutation is repeated with the same `idempotencyKey`."
    )


@strawberry.type
class InvitationQuery:
    invitations: list[Invitation] = field(
        resolvers.administration.invitations.invitations,
        "Invitations of the organization, the newest first. Needs the role ADMIN.",
    )


@strawberry.type
class InvitationMutation:
    create_invitation: InvitationLink = mutation(
        resolvers.administration.invitations.create_invitation,
        "Invites people by a link, which is also mailed if the input has an address. Needs the role ADMIN.",
        limit=WriteLimit.OPERATIONS,
    )
    revoke_invitation: Invitation = mutation(
        resolvers.administration.invitations.revoke_invitation,
        "Makes an invitation invalid. People who have accepted it keep the role. Idempotent. Needs the role ADMIN.",
        limit=WriteLimit.OPERATIONS,
    )
    accept_invitation: User = mutation(
        resolvers.administration.invitations.accept_invitation,
        "Accepts an invitation for the viewer, who gets its role and joins its community. Idempotent. NOT_FOUND for an "
        "unknown link. CONFLICT if it is used up, expired or revoked. FORBIDDEN if it is for another mail address. "
        "Needs no role.",
        limit=WriteLimit.JOINS,
    )
