"""GraphQL types of moderation, and the root fields that moderators use. schema/root.py adds them to the root types."""

from datetime import datetime

import strawberry
from strawberry import ID

import resolvers.chat.community_pictures
import resolvers.chat.community_settings
import resolvers.chat.joining
import resolvers.chat.moderation
from resolvers.limits.writes import WriteLimit
from schema.binding import NO_KEY, field, mutation
from schema.chat.communities import Community, Topic
from schema.chat.messages import Message
from schema.identity import User
from schema.nodes import own_id
from storage.chat.roles import CommunityRole


@strawberry.type(description="A member of a community.")
class CommunityMember:
    user: User = field(resolvers.chat.moderation.member_user, "The member.")
    role: CommunityRole = strawberry.field(description="Role in the community.")
    joined_at: datetime = strawberry.field(description="When the member joined.")
    muted_until: datetime | None = field(
        resolvers.chat.moderation.muted_until,
        "When the member may post, react and edit again. Null if the member is not muted, and for viewers who are "
        "neither the member nor a moderator or owner of the community.",
    )


@strawberry.type(description="A ban of a person from a community.")
class CommunityBan:
    user: User = field(resolvers.chat.moderation.banned_user, "The banned person.")
    banned_by: User = field(resolvers.chat.moderation.banned_by, "The moderator who banned the person.")
    reason: str = strawberry.field(description="Reason, 1 to 500 characters, as the moderator wrote it.")
    banned_at: datetime = strawberry.field(description="When the person was banned.")
    until: datetime | None = strawberry.field(
        description="When the ban ends; null if it lasts until a moderator ends it."
    )


@strawberry.type(description="A request to join a community that waits for a decision of its moderators.")
class JoinRequest:
    user: User = field(resolvers.chat.joining.requester, "The person who requests to join.")
    message: str = strawberry.field(description="Text for the moderators, at most 500 characters; may be empty.")
    requested_at: datetime = strawberry.field(description="When the person made the request.")


@strawberry.type(description="A community with members, none of whom is an owner with an active account.")
class CommunityWithoutOwner:
    id: ID = own_id("CommunityWithoutOwner", "Unique identifier. `communityMembers` and `setCommunityRole` take it.")
    name: str | None = field(
        resolvers.chat.moderation.visible_name,
        "Name of the community; null for a PRIVATE one that the viewer has not joined.",
    )
    member_count: int = strawberry.field(description="Number of members.")


@strawberry.type
class ModerationQuery:
    """Lists that moderators use."""

    community_members: list[CommunityMember] = field(
        resolvers.chat.moderation.community_members,
        "Members of a community with their roles, ordered by handle. An ADMIN lists those of each community in "
        "`communitiesWithoutOwner`, also of a PRIVATE one.",
    )
    communities_without_owner: list[CommunityWithoutOwner] = field(
        resolvers.chat.moderation.communities_without_owner,
        "Communities that nobody manages, ordered by id: all owners are deactivated or erased. An ADMIN makes a member "
        "the owner with `setCommunityRole`. Communities without members are left out. Needs the role ADMIN.",
        scope=NO_KEY,
    )
    community_bans: list[CommunityBan] = field(
        resolvers.chat.moderation.community_bans,
        "Bans of a community that are in force, ordered by user id. Needs a moderator or owner of the community, or "
        "the role ADMIN.",
    )
    join_requests: list[JoinRequest] = field(
        resolvers.chat.joining.join_requests,
        "Requests to join a community, ordered by user id. Needs a moderator or owner of the community, or the role "
        "ADMIN.",
        scope="moderation:read",
    )


@strawberry.type
class ModerationMutation:
    """Acts of owners and moderators."""

    update_community: Community = mutation(
        resolvers.chat.community_settings.update_community,
        "Changes the name, the description or the visibility of a community. Needs an owner. When a community is no "
        "longer PUBLIC, the subscriptions of people who have not joined end. Subscribers of the community receive "
        "`CommunityChanged`. Idempotent.",
        limit=WriteLimit.MODERATION,
        scope="moderation:write",
    )
    set_community_picture: Community = mutation(
        resolvers.chat.community_pictures.set_community_picture,
        "Makes a picture that the viewer has uploaded the picture of a community, and deletes the earlier one. The "
        "file then belongs to the community. Needs an owner. Subscribers of the community receive `CommunityChanged`. "
        "BAD_USER_INPUT for an upload that is not READY or has another purpose than AVATAR. CONFLICT for a file that "
        "is shown elsewhere. Idempotent.",
        limit=WriteLimit.MODERATION,
        scope="moderation:write",
    )
    remove_community_picture: Community = mutation(
        resolvers.chat.community_pictures.remove_community_picture,
        "Removes and deletes the picture of a community. Needs an owner. Subscribers of the community receive "
        "`CommunityChanged`. Idempotent.",
        limit=WriteLimit.MODERATION,
        scope="moderation:write",
    )
    set_community_banner: Community = mutation(
        resolvers.chat.community_pictures.set_community_banner,
        "Makes a picture that the viewer has uploaded the banner of a community, and deletes the earlier one. The "
        "file then belongs to the community. Needs an owner. Subscribers of the community receive `CommunityChanged`. "
        "BAD_USER_INPUT for an upload that is not READY or has another purpose than BANNER. CONFLICT for a file that "
        "is shown elsewhere. Idempotent.",
        limit=WriteLimit.MODERATION,
        scope="moderation:write",
    )
    remove_community_banner: Community = mutation(
        resolvers.chat.community_pictures.remove_community_banner,
        "Removes and deletes the banner of a community. Needs an owner. Subscribers of the community receive "
        "`CommunityChanged`. Idempotent.",
        limit=WriteLimit.MODERATION,
        scope="moderation:write",
    )
    archive_community: Community = mutation(
        resolvers.chat.community_settings.archive_community,
        "Makes a community read-only: nobody joins, posts, reacts, edits or creates topics, and lists leave it out. "
        "Messages can still be deleted. Subscribers of the community receive `CommunityChanged`. Needs an owner. "
        "Idempotent.",
        limit=WriteLimit.MODERATION,
    )
    unarchive_community: Community = mutation(
        resolvers.chat.community_settings.unarchive_community,
        "Ends the archiving of a community. Subscribers of the community receive `CommunityChanged`. Needs an owner. "
        "Idempotent.",
        limit=WriteLimit.MODERATION,
    )
    rename_topic: Topic = mutation(
        resolvers.chat.community_settings.rename_topic,
        "Replaces the title of a topic. Subscribers of the topic and of the community receive `TopicChanged`. Needs a "
        "moderator or owner of the community, or the role ADMIN. Idempotent.",
        limit=WriteLimit.MODERATION,
    )
    archive_topic: Topic = mutation(
        resolvers.chat.community_settings.archive_topic,
        "Makes a topic read-only: nobody posts, reacts or edits, scheduled messages to it fail with FORBIDDEN, and "
        "lists leave it out. Messages can still be deleted. Subscribers of the topic and of the community receive "
        "`TopicChanged`. Needs a moderator or owner of the community, or the role ADMIN. Idempotent.",
        limit=WriteLimit.MODERATION,
    )
    unarchive_topic: Topic = mutation(
        resolvers.chat.community_settings.unarchive_topic,
        "Ends the archiving of a topic. Needs a moderator or owner of the community, or the role ADMIN. Idempotent.",
        limit=WriteLimit.MODERATION,
    )
    pin_message: Message = mutation(
        resolvers.chat.community_settings.pin_message,
        "Pins a message above the topic's earlier pins. NOT_FOUND for a message of somebody whom the viewer has "
        "blocked. CONFLICT for a deleted message, and when 50 messages are pinned. Needs a moderator or owner of the "
        "community, or the role ADMIN. Idempotent.",
        limit=WriteLimit.MODERATION,
    )
    unpin_message: Message = mutation(
        resolvers.chat.community_settings.unpin_message,
        "Removes a pin. NOT_FOUND for a message of somebody whom the viewer has blocked. Needs a moderator or owner of "
        "the community, or the role ADMIN. Idempotent.",
        limit=WriteLimit.MODERATION,
    )
    set_slow_mode: Topic = mutation(
        resolvers.chat.community_settings.set_slow_mode,
        "Sets the seconds that each person has to wait between two messages to a topic. A message that comes too early "
        "is RATE_LIMITED. Moderators and owners do not wait. Needs a moderator or owner of the community, or the role "
        "ADMIN. Idempotent.",
        limit=WriteLimit.MODERATION,
    )
    request_to_join: Community = mutation(
        resolvers.chat.joining.request_to_join,
        "Asks the moderators of a LISTED community for membership. Another request replaces the first. In a PUBLIC "
        "community the viewer joins at once. FORBIDDEN for a banned person. Idempotent.",
        limit=WriteLimit.JOINS,
    )
    decide_join_request: Community = mutation(
        resolvers.chat.joining.decide_join_request,
        "Approves or refuses a request to join. CONFLICT if an approved person has not asked. Idempotent.",
        limit=WriteLimit.MODERATION,
        scope="moderation:write",
    )
    add_member: CommunityMember = mutation(
        resolvers.chat.joining.add_member,
        "Makes a person of the organization a member, in a community of any visibility. FORBIDDEN for a banned person. "
        "Idempotent.",
        limit=WriteLimit.MODERATION,
        scope="moderation:write",
    )
    set_community_role: CommunityMember = mutation(
        resolvers.chat.moderation.set_community_role,
        "Sets a member's role. Needs an owner of the community. CONFLICT for the last owner whose account is active. "
        "In a community of `communitiesWithoutOwner`, an ADMIN may make a member with an active account the owner. "
        "Idempotent.",
        limit=WriteLimit.MODERATION,
    )
    kick_member: Community = mutation(
        resolvers.chat.moderation.kick_member,
        "Removes a member, who may join again. The member's subscriptions end, and nothing that the member sends is "
        "stored afterwards. Moderators remove members, owners also moderators. Idempotent.",
        limit=WriteLimit.MODERATION,
    )
    ban_member: CommunityBan = mutation(
        resolvers.chat.moderation.ban_member,
        "Bans a person from a community and ends the membership, as `kickMember` does. The person cannot join again "
        "until the ban ends. Another ban of the same person replaces the first.",
        limit=WriteLimit.MODERATION,
    )
    unban_member: Community = mutation(
        resolvers.chat.moderation.unban_member,
        "Ends a ban. The person may join again, and is not made a member. Idempotent.",
        limit=WriteLimit.MODERATION,
    )
    mute_member: CommunityMember = mutation(
        resolvers.chat.moderation.mute_member,
        "Mutes a member until an instant. A muted member reads, but cannot post, react or edit, also after leaving and "
        "joining again. Another mute of the same member replaces the first.",
        limit=WriteLimit.MODERATION,
    )
    unmute_member: Community = mutation(
        resolvers.chat.moderation.unmute_member, "Ends a mute. Idempotent.", limit=WriteLimit.MODERATION
    )
