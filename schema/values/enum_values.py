"""Descriptions of the values of every enum of the schema. Types and storage declare the values themselves."""

from typing import Any

import strawberry
from graphql import GraphQLEnumType

from schema.values.audit_values import AUDIT_VALUES

ENUM_VALUES = {
    **AUDIT_VALUES,
    "BounceClass": {
        "NO_MAILBOX": "The mailbox does not exist.",
        "NO_DOMAIN": "The domain does not exist, or takes no mail.",
        "MOVED": "The mailbox has moved, or its owner or the domain's owner has changed.",
        "DISABLED": "The mailbox or the account is disabled.",
        "IMPORTED_HARD": "Imported from another book as a hard bounce.",
        "FULL": "The mailbox is full.",
        "EXPIRED": "The message was not delivered in time.",
        "TEMPORARY": "The mailbox was not available for another reason.",
        "IMPORTED_SOFT": "Imported from another book as a soft bounce.",
    },
    "BounceTreatment": {
        "HARD": "They block at `hardBounces`.",
        "SOFT": "They block on `softBounceDays`. Several on one day count once.",
        "IGNORED": "They never block.",
    },
    "CallJobState": {
        "SCHEDULED": "Waits for `startAt`.",
        "RUNNING": "Numbers are called.",
        "WAITING_FOR_WINDOW": "Outside the calling window; goes on when it opens.",
        "PAUSED": "Starts no calls until `resumeCallJob`. Active calls go on.",
        "COMPLETED": "Final: no number waits for a call or is in one.",
        "CANCELLED": "Final: an operator cancelled the job. Active calls go on.",
        "REJECTED": "Final: a row of the list is bad, so nobody was called.",
    },
    "CallOutcome": {
        "ANSWERED": "The call was answered, and no machine was detected.",
        "VOICEMAIL": "A machine answered, such as a voicemail. The number is called again while attempts are left.",
        "NO_ANSWER": "Nobody answered. The number is called again while attempts are left.",
        "BUSY": "The line was busy. The number is called again while attempts are left.",
        "REJECTED": "The call was declined.",
        "INVALID_NUMBER": "The number does not exist.",
        "NETWORK_ERROR": "The call could not be connected.",
        "DO_NOT_CALL": "The number was on the do-not-call list and not called, or the report of the call put it there.",
        "EXPIRED": "The service gave the call up: it was cancelled, or its time was over, perhaps before it began.",
    },
    "CallReportEvent": {
        "ANSWERED": "The call was answered, and goes on.",
        "ENDED": "The call is over. `outcome` says how.",
    },
    "CallTaskState": {
        "QUEUED": "Waits for its first or next call.",
        "DIALLING": "A call was begun, and no report says yet that it was answered.",
        "IN_CALL": "The call was answered.",
        "COMPLETED": "Final: a person or a machine answered the last call.",
        "FAILED": "Final: the last call reached nobody, or the telephony service refused it.",
        "UNKNOWN": "The outcome of the call is not known. A late report can still change the state.",
        "SKIPPED": "Final: the outcome is DO_NOT_CALL or EXPIRED.",
        "CANCELLED": "Final: the job was cancelled while the number waited for its first or next call.",
    },
    "CommunityRole": {
        "OWNER": "Sets roles, and acts on moderators and members.",
        "MODERATOR": "Acts on members.",
        "MEMBER": "Reads and writes.",
    },
    "CommunityVisibility": {
        "PUBLIC": "Everybody in the organization sees the community and may join.",
        "LISTED": "Everybody sees name, pictures, description and number of members. Moderators approve who joins.",
        "PRIVATE": "Only members see that the community exists. Moderators add people.",
    },
    "ContentReportCategory": {
        "SPAM": "Unwanted advertising, or the same content again and again.",
        "HARASSMENT": "It attacks or bullies a person.",
        "HATE": "It attacks people for what they are.",
        "VIOLENCE": "It shows, threatens or praises violence.",
        "SEXUAL": "It is sexual content.",
        "SELF_HARM": "It shows or encourages self-harm.",
        "PRIVACY": "It shows another person's private data.",
        "OTHER": "Another reason, which the text says.",
    },
    "ContentReportDecision": {
        "DISMISS": "Nothing happens.",
        "REMOVE": "The message or post is deleted.",
        "WARN": "The author, or the reported person, gets a notification with the note.",
        "BAN": "The author of a message in a community is banned from it. Other people are deactivated.",
    },
    "ContentReportOutcome": {
        "DISMISS": "Nothing happened.",
        "REMOVE": "The message or post was deleted.",
        "WARN": "The author, or the reported person, got a notification with the note.",
        "BAN": "The author was banned from the community.",
        "DEACTIVATE": "The person lost access to the organization.",
    },
    "ContentReportState": {
        "OPEN": "The report waits for a decision.",
        "DECIDED": "A moderator has decided.",
    },
    "ContentReportSubject": {
        "MESSAGE": "A message of a community or a conversation.",
        "POST": "A post.",
        "USER": "A person.",
    },
    "ConversationState": {
        "JOINED": "The viewer reads and writes.",
        "REQUESTED": "The viewer reads, and accepts or declines.",
    },
    "DeliveryEventKind": {
        "DELIVERY": "An attempt to deliver a mail. Without `smtpCode` and `enhancedStatus` the connection failed.",
        "COMPLAINT": "The recipient reported a mail as spam.",
    },
    "DigestObstacle": {
        "NO_VERIFIED_ADDRESS": "The person has no mail address that is verified.",
        "UNSUBSCRIBED": "The person ended digests by the link in a mail. Choosing a period turns them on again.",
        "ADDRESS_BLOCKED": "The address book blocks the address or its domain, for example after bounces.",
        "NOT_SET_UP": "The server sends no digests.",
    },
    "DigestPeriod": {
        "NEVER": "No digests.",
        "HOURLY": "At most one digest an hour.",
        "DAILY": "At most one digest a day.",
        "WEEKLY": "At most one digest a week.",
    },
    "ErasureState": {
        "PENDING": "Requested. The user's access has ended.",
        "RUNNING": "Some steps are done.",
        "COMPLETED": "The user's data are removed. A record with the id stays.",
    },
    "ExportFailure": {
        "TOO_LARGE": "The archive has more than 256 MiB.",
    },
    "ExportState": {
        "PENDING": "Requested.",
        "RUNNING": "A worker writes the archive.",
        "COMPLETED": "The archive can be downloaded.",
        "FAILED": "There is no archive. `failure` says why.",
    },
    "FanOutState": {
        "PENDING": "Has not begun.",
        "RUNNING": "The post is being added to home feeds.",
        "COMPLETED": "Each home feed has the post, or counts as failed.",
    },
    "FileRefusal": {
        "UNREADABLE": "The file cannot be decoded as a picture, although it begins like one or has to be one.",
        "TOO_MANY_PIXELS": "The picture has too many pixels or frames, or more than 48 MiB.",
        "TOO_SLOW": "Decoding the picture took too long, or too much memory.",
    },
    "HomeFeedState": {
        "READY": "The page has every post that belongs on it.",
        "REBUILDING": "The feed is being rebuilt. Read the page again after a few seconds.",
    },
    "InvitationState": {
        "OPEN": "It can be accepted.",
        "USED_UP": "As many people as allowed have accepted.",
        "EXPIRED": "Its time is over.",
        "REVOKED": "It was revoked, its creator may not invite any more, or its only recipient was erased.",
    },
    "MailLanguage": {
        "EN": "English.",
        "JA": "Japanese.",
    },
    "MediaKind": {
        "IMAGE": "A picture.",
        "VIDEO": "A video.",
        "REEL": "Instagram's own kind of video.",
    },
    "MailChangeKind": {
        "ADDRESS_BLOCKED": "An address was blocked by hand.",
        "ADDRESS_UNBLOCKED": "An address was unblocked, and its counters were reset.",
        "DOMAIN_BLOCKED": "A domain was blocked by hand.",
        "DOMAIN_ALLOWED": "A domain was allowed by hand.",
        "DOMAIN_LEFT_TO_RULE": "A decision about a domain ended, so that the rules decide again.",
        "POLICY_SET": "A version of the policy was set.",
    },
    "MediaState": {
        "NONE": "No upload is needed: there are no media, or the target gets them together with the post.",
        "PENDING": "The upload has not begun.",
        "UPLOADING": "A worker uploads the media, before the post is due.",
        "READY": "The network has the media.",
        "STALE": "An earlier upload can't be used any more, as after a change of the post. Media are uploaded again.",
        "FAILED": "The upload before the due time failed. It is tried again, at the latest when the post is due.",
    },
    "MuteSubject": {
        "USER": "A user.",
        "TOPIC": "A topic.",
        "COMMUNITY": "A community with all its topics.",
        "POST": "A post with all replies below it.",
    },
    "Network": {
        "MASTODON": "A Mastodon server.",
        "INSTAGRAM": "Instagram.",
        "BLUESKY": "Bluesky.",
        "X": "X, formerly Twitter.",
        "WEBHOOK": "Posts are sent as signed requests to the account's URL.",
        "SANDBOX": "A built-in network for tests, whose posts nobody sees.",
    },
    "NotificationCategory": {
        "DIRECT_MESSAGE": "New messages in the person's conversations.",
        "MENTION": "Mentions of the person.",
        "REPLY": "Replies to the person's posts, quotes of them, and replies in followed threads.",
        "REACTION": "Reactions to the person's messages and posts, and reposts of the posts.",
        "FOLLOW": "New followers.",
        "PUBLICATION": "Scheduled posts that failed, wait, are late or have an unknown outcome; accounts' credentials.",
        "MODERATION": "Decisions about the person's reports, and warnings.",
        "MEMBERSHIP": "The person became a member of a community.",
        "STAMP_PACK": "The person got a pack of stamps.",
    },
    "NotificationKind": {
        "MENTION": "Somebody mentioned the viewer.",
        "REACTION": "Somebody reacted to a message or a post of the viewer.",
        "FOLLOW": "Somebody follows the viewer.",
        "REPLY": "Somebody replied to the viewer's post.",
        "REPOST": "Somebody reposted the viewer's post.",
        "QUOTE": "Somebody quoted the viewer's post.",
        "PUBLICATION_FAILED": "A scheduled post of the viewer, or for OPERATORs of others, was not published.",
        "PUBLICATION_UNKNOWN": "Nobody knows if a post of the viewer, or for OPERATORs of others, was published.",
        "PUBLICATION_NEEDS_ATTENTION": "A scheduled post waits, because the account's credentials can't be used.",
        "PUBLICATION_LATE": "A scheduled post of the viewer was published more than a minute late.",
        "ACCOUNT_CREDENTIALS_ENDING": "Credentials that the viewer gave to an account end in 14 days, or in 3.",
        "ACCOUNT_CREDENTIALS_ENDED": "Credentials that the viewer gave to an account have ended.",
        "ACCOUNT_NEEDS_ATTENTION": "Credentials that the viewer gave to an account can't be used. No post was due.",
        "REPORT_DECIDED": "Moderators decided about the viewer's report.",
        "WARNING": "A moderator warns the viewer.",
        "ADDED_TO_COMMUNITY": "A moderator or an accepted invitation made the viewer a member of a community.",
        "THREAD_REPLY": "Somebody replied in a thread that the viewer follows.",
        "STAMP_PACK_RECEIVED": "The viewer earned a pack of stamps, or a moderator gave it.",
        "CONVERSATION_REQUEST": "A stranger asks for a conversation. Gone when the viewer has accepted or declined.",
        "DIRECT_MESSAGE": "A conversation of the viewer has unread messages. At most one for each conversation.",
    },
    "NotificationLevel": {
        "ALL": "All notifications.",
        "MENTIONS": "Mentions of the person, and decisions and warnings of moderators.",
        "NOTHING": "Decisions and warnings of moderators only.",
    },
    "NotificationPlaceKind": {
        "TOPIC": "A topic or a conversation.",
        "COMMUNITY": "A community with its topics.",
    },
    "PublicationReportReason": {
        "FAILED": "It was not published.",
        "NEEDS_ATTENTION": "It waits, because the account's credentials can't be used.",
        "UNKNOWN": "Nobody knows whether it was published, and a worker does not find out in time.",
        "LATE": "It was published more than a minute late.",
    },
    "PublicationState": {
        "SCHEDULED": "Waits for its time.",
        "PUBLISHING": "It is due, and a worker publishes it, with more tries if the first has no effect.",
        "PUBLISHED": "Final: the network has the post.",
        "FAILED": "It was not published. `error` says why. `retryPublication` tries again.",
        "UNKNOWN": "The network was called, but its answer was lost. It may have been published.",
        "CANCELLED": "Final: cancelled before it was published.",
        "NEEDS_ATTENTION": "The account's credentials were refused or can't be read. Nothing was published.",
    },
    "RetainedData": {
        "PHONE_NUMBERS": "Phone numbers of call jobs. The days count from the end of the job.",
        "CALL_VARIABLES": "Variables of call jobs. The days count from the end of the job.",
        "MAIL_LEDGER": "Delivery events of an address. The days count from the aggregation into the address book.",
        "DIRECT_MESSAGES": "Messages of conversations, of which tombstones stay. The days count from the message.",
    },
    "Role": {
        "MEMBER": "Uses communities, conversations and feeds.",
        "OPERATOR": "Also publishes to connected accounts, and runs calls and the address book. Includes MEMBER.",
        "SERVICE": "A program that reports calls and deliveries, and reads the address book. Includes no other role.",
        "ADMIN": "Also administers the organization. Includes OPERATOR.",
    },
    "ScheduledPostState": {
        "SCHEDULED": "All publications are SCHEDULED.",
        "PUBLISHING": "A publication is PUBLISHING, or some are SCHEDULED and some are not.",
        "PUBLISHED": "All publications are PUBLISHED.",
        "PARTIAL": "All publications have ended, in different states.",
        "FAILED": "All publications are FAILED.",
        "UNKNOWN": "No publication is SCHEDULED or PUBLISHING any more, and one is UNKNOWN.",
        "CANCELLED": "All publications are CANCELLED.",
        "NEEDS_ATTENTION": "No publication is SCHEDULED, PUBLISHING or UNKNOWN, and one is NEEDS_ATTENTION.",
    },
    "SignInMethod": {
        "OIDC": "At an identity provider, by OpenID Connect.",
        "PASSWORD": "With the password of a local account.",
        "PASSKEY": "With a passkey of a local account.",
        "DEMO": "As a demo user.",
    },
    "StampPackAvailability": {
        "EVERYONE": "Everybody in the organization.",
        "EARNED": "People who have reached the threshold of the pack's rule.",
        "GIVEN": "People to whom a moderator gave the pack.",
    },
    "StampRuleKind": {
        "MESSAGES_POSTED": "Undeleted messages, also in threads. Those in conversations do not count.",
        "POSTS_CREATED": "Undeleted posts, without reposts.",
        "REACTIONS_RECEIVED": "Reactions of other people to the person's messages and posts, without conversations.",
        "MEMBER_DAYS": "Whole days since the first sign-in.",
    },
    "TelephonyProvider": {
        "SIMULATOR": "Calls nobody, and invents outcomes.",
        "WEBHOOK": "A service of the operator, which gets each call as an HTTP request.",
        "TWILIO": "Twilio's API.",
    },
    "UploadPurpose": {
        "ATTACHMENT": "A file of a message, a post or a scheduled post.",
        "AVATAR": "A picture for `setAvatar` or `setCommunityPicture`, cut to a square of at most 512 pixels.",
        "BANNER": "A picture for `setBanner` or `setCommunityBanner`, cut to 3:1, at most 1500 by 500 pixels.",
        "STAMP": "A picture for `addStamp`, reduced to at most 320 pixels.",
    },
    "UploadState": {
        "RECEIVING": "Bytes are missing.",
        "CHECKING": "All bytes are stored. A worker determines the type and decodes pictures.",
        "READY": "The file can be attached.",
        "REFUSED": "The bytes were deleted. `refusal` says why.",
    },
    "VerdictRule": {
        "UNKNOWN_ADDRESS": "Allowed: no delivery to the address or domain is known, and no bounce.",
        "DELIVERABLE": "Allowed: mail was delivered, and no rule blocks it. It may have bounced softly since.",
        "ONLY_BOUNCES": "Allowed, because no rule blocks it yet: mail bounced, and none was ever delivered.",
        "HARD_BOUNCED": "Blocked: mail was refused for good, and none was delivered since.",
        "SOFT_BOUNCED_REPEATEDLY": "Blocked: soft bounces on three UTC days or more, and no delivery since.",
        "COMPLAINED": "Blocked until `unblockAddress`: the recipient reported mail as spam.",
        "UNSUBSCRIBED": "Blocked: the person ended digests by the link in a mail, and has not turned them on since.",
        "DOMAIN_DEAD": "Blocked: the domain does not exist, takes no mail, or was unreachable for three days.",
        "INVALID_ADDRESS": "Blocked: it is no mail address, or no domain that can receive mail.",
        "UNBLOCKED": "Allowed: an operator unblocked the address, and no rule has blocked it since.",
        "BY_HAND": "Allowed or blocked: an operator decided about the domain, or blocked the address.",
    },
    "WebhookDeliveryOutcome": {
        "WAITING": "A test or a repetition was requested, and a worker has not sent it yet.",
        "DELIVERED": "The answer was 2xx.",
        "FAILED": "There was another answer or none, or nothing could be sent.",
    },
    "WebhookDisabledReason": {
        "REQUESTED": "Disabled by `disableWebhook`.",
        "FAILING": "A message has failed for three days.",
        "GONE": "The address answered 410.",
        "KEY_ENDED": "The webhook's service key was revoked or has expired.",
    },
    "WebhookFormat": {
        "EVENT": "The event as JSON of the GraphQL types.",
        "SLACK": '`{"text": "..."}` with a text for people, in English, as Slack, Mattermost and Rocket.Chat take it.',
        "DISCORD": '`{"content": "..."}` with a text for people, as Discord takes it. It notifies nobody.',
    },
    "Weekday": {
        "MON": "Monday.",
        "TUE": "Tuesday.",
        "WED": "Wednesday.",
        "THU": "Thursday.",
        "FRI": "Friday.",
        "SAT": "Saturday.",
        "SUN": "Sunday.",
    },
}
"""The descriptions, by the name of the enum and the name of the value."""


class DescribedSchema(strawberry.Schema):
    """A schema whose enum values have their descriptions, in introspection and in the exported text."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, type_ in self._schema.type_map.items():
            if isinstance(type_, GraphQLEnumType) and name in ENUM_VALUES:
                for value, definition in type_.values.items():
                    definition.description = ENUM_VALUES[name].get(value)
