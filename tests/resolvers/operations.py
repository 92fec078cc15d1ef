"""Operations generated from the schema: one for every root field, with arguments and a selection of all fields.

A new field needs no change in this module if VALUES has its arguments. Otherwise MissingArgumentValue names the
argument.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

from graphql import (
    GraphQLArgument,
    GraphQLField,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLUnionType,
    get_named_type,
    get_nullable_type,
    is_leaf_type,
    is_list_type,
    is_required_argument,
    is_required_input_field,
)

from schema.root import schema

Value = GraphQLArgument | GraphQLInputField

TODAY = datetime.now(UTC).isoformat()

VALUES: dict[str, object] = {
    "approve": True,
    "bio": "Words",
    "callsPerSecond": 100.0,
    "concurrentCalls": 1000,
    "day": TODAY,
    "days": 7,
    "data": "PHONE_NUMBERS",
    "csv": "phone_number\n+819012345678\n",
    "credentials": "lose",
    "dueAt": "2030-01-01T00:00:00Z",
    "dueAtLocal": "2030-01-01T00:00",
    "altText": "Words",
    "address": "ann@example.org",
    "afterVersion": 1,
    "addresses": ["ann@example.org", "nobody@example.net"],
    "at": TODAY,
    "description": "Words",
    "domain": "example.org",
    "domains": ["example.org", "example.net"],
    "emoji": "👍",
    "endpoint": "https://push.example.org/send/1",
    "publicKey": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
    "authSecret": "BTBZMqHH6r4Tts7J_aSIgg",
    "enabled": True,
    "event": "ANSWERED",
    "handle": "fox",
    "eventId": "e1",
    "fileName": "words.txt",
    "from": TODAY,
    "graceS": 0,
    "eventTypes": ["MessagePosted"],
    "url": "https://hooks.example.org/words",
    "availability": "GIVEN",
    "latest": "now",
    "level": "MENTIONS",
    "name": "Word",
    "network": "SANDBOX",
    "note": "Words",
    "subject": "MESSAGE",
    "category": "SPAM",
    "decision": "DISMISS",
    "published": True,
    "phoneNumbers": ["+819012345670"],
    "query": "a",
    "role": "MEMBER",
    "scenario": "Words",
    "seconds": 0,
    "sequence": 1,
    "shown": True,
    "size": 5,
    "stampName": "lit",
    "tag": "words",
    "reason": "Words",
    "roles": ["MEMBER"],
    "scopes": ["chat:read"],
    "text": "Words",
    "timestamp": "1.000000",
    "timeZone": "UTC",
    "title": "Words",
    "to": TODAY,
    "typing": True,
    "until": "2040-01-01T00:00:00Z",
}
"""Values by argument name, except for ids of existing objects. Other optional arguments are omitted."""

VALUES_OF_FIELDS: dict[str, dict[str, object]] = {
    "changeHandle": {"handle": "newt"},
    "mailPolicyDryRun": {"after": "00"},
    "blockedAddresses": {"after": "00"},
    "replayWebhook": {"since": "2026-01-01T00:00:00Z"},
}
"""Values by argument name, for fields that need other ones than VALUES."""

ONLY_IF_REQUIRED = {"dueAtLocal", "timeZone"}
"""Arguments of VALUES that are passed only where they are required. `dueAtLocal` excludes `dueAt`."""

SAME_FOR_ALL = {"Stamp": "hello"}
"""Ids of objects that are the same in every organization, by type."""

TYPE_BY_ARGUMENT = {"toTopicIds": "Topic", "toAccountIds": "ConnectedAccount", "accountId": "ConnectedAccount"} | {
    "targetId": "User",
    "replyTo": "Message",
    "quoteOf": "QuotedPost",
    "quotedMessageId": "Message",
    "userIds": "Partner",
    "afterUserId": "User",
    "token": "InvitationToken",
    "sessionId": "UsersSession",
    "subjectId": "Subject",
    "packId": "StampPack",
    "responsibleUserId": "User",
    "inReplyTo": "Post",
    "deliveryId": "WebhookDelivery",
    "publicationId": "RefusedPublication",
}
"""Types of the ids in arguments whose name does not contain the type, or whose type is not ID."""

UPLOAD_TYPES = {
    "addStamp": "StampUpload",
    "setAvatar": "AvatarUpload",
    "setBanner": "BannerUpload",
    "setCommunityBanner": "CommunityBannerUpload",
    "setCommunityPicture": "CommunityPictureUpload",
}
"""Types of the ids in `uploadId`, for fields that use an upload up. Each has a purpose."""

ENDING = (
    *("archive", "ban", "cancel", "deactivate", "decide", "decline", "delete", "disconnect", "end", "erase", "kick"),
    *("leave", "release", "remove", "resolve", "retry", "revoke", "rotate", "takeBack", "undo", "unmute"),
)
"""First words of mutations after which an object is no longer as the others need it."""

DEPTH = 4


class MissingArgumentValue(AssertionError):
    """An argument for which VALUES has no value."""


@dataclass(frozen=True)
class RootField:
    """A field of Query, Mutation or Subscription. Without `with_all_ids`, it is called with its required ids only."""

    root: str
    name: str
    field: GraphQLField
    with_all_ids: bool = True
    omitted_types: frozenset[str] = frozenset()
    """Types of optional ids that are not passed."""

    def __str__(self) -> str:
        return f"{self.root}.{self.name}"

    @property
    def id_types(self) -> list[str]:
        """The types of the objects whose ids the arguments take, except SAME_FOR_ALL."""
        types = {each for name, argument in self.field.args.items() for each in self._id_types(name, argument)}
        return sorted(types - SAME_FOR_ALL.keys())

    @property
    def is_ending(self) -> bool:
        """Whether objects are new enough for other mutations only until this one is executed."""
        return self.name.startswith(ENDING)

    def _id_types(self, name: str, value: Value) -> Iterator[str]:
        type_ = get_named_type(value.type)
        if isinstance(type_, GraphQLInputObjectType):
            for each, field in type_.fields.items():
                yield from self._id_types(each, field)
        elif (type_.name == "ID" or name in TYPE_BY_ARGUMENT) and name not in VALUES:
            yield from {self._id_type(name)} - self.omitted_types

    def _id_type(self, name: str) -> str:
        """Returns the type of an id: Topic for `topicId` and `topicIds`, the type of the field for `id` and `after`."""
        if self.name in ("eraseUser", "erasures"):
            return "ErasedUser"
        if self.name in UPLOAD_TYPES and name == "uploadId":
            return UPLOAD_TYPES[self.name]
        if self.name in ("mediaLibrary", "removeFromLibrary"):
            return "LibraryFile"
        if self.name in ("acceptConversation", "declineConversation"):
            return "RequestedConversation"
        if self.name == "nodes":
            return "Node"
        if name in TYPE_BY_ARGUMENT:
            return TYPE_BY_ARGUMENT[name]
        stem = name.removesuffix("s").removesuffix("Id")
        return get_named_type(self.field.type).name if name in ("id", "after") else stem[:1].upper() + stem[1:]

    def without_optional_ids(self) -> "RootField":
        """Returns the same field without its optional ids."""
        return replace(self, with_all_ids=False)

    def without_uploads(self) -> "RootField":
        """Returns the same field without files to attach, which only their uploader may attach, and once."""
        return replace(self, omitted_types=self.omitted_types | {"Upload"})

    def text(self, depth: int = DEPTH) -> str:
        """Returns the operation, with variables named like the arguments and a selection of `depth` levels."""
        arguments = [name for name, argument in self.field.args.items() if self._is_passed(name, argument)]
        declarations = ", ".join(f"${name}: {self.field.args[name].type}" for name in arguments)
        values = ", ".join(f"{name}: ${name}" for name in arguments)
        head = (
            f"{self.root.lower()} ({declarations}) {{ {self.name}({values})"
            if arguments
            else self._head_without_arguments
        )
        return f"{head} {selection(get_named_type(self.field.type), depth)} }}"

    @property
    def _head_without_arguments(self) -> str:
        return f"{self.root.lower()} {{ {self.name}"

    def variables(self, ids: Mapping[str, str], **values: object) -> dict[str, Any]:
        """Returns the variables with these ids by type. Raises: MissingArgumentValue."""
        all_values = {**VALUES, **VALUES_OF_FIELDS.get(self.name, {}), **values}
        return {
            name: self._value(name, argument, ids, all_values)
            for name, argument in self.field.args.items()
            if self._is_passed(name, argument)
        }

    def _is_passed(self, name: str, value: Value) -> bool:
        is_required = (
            is_required_argument(value) if isinstance(value, GraphQLArgument) else is_required_input_field(value)
        )
        values = VALUES | VALUES_OF_FIELDS.get(self.name, {})
        is_known = name in values and name not in ONLY_IF_REQUIRED
        return is_required or is_known or (self.with_all_ids and any(True for _ in self._id_types(name, value)))

    def _value(self, name: str, value: Value, ids: Mapping[str, str], values: Mapping[str, object]) -> object:
        type_ = get_named_type(value.type)
        if isinstance(type_, GraphQLInputObjectType):
            fields = [(each, field) for each, field in type_.fields.items() if self._is_passed(each, field)]
            value_: object = {each: self._value(each, field, ids, values) for each, field in fields}
        elif name in values:
            return values[name]
        elif type_.name == "ID" or name in TYPE_BY_ARGUMENT:
            value_ = self._id(name, ids)
        else:
            raise MissingArgumentValue(
                f"{self} takes {name}: {value.type}. Give it a value in tests/resolvers/operations.py, VALUES."
            )
        return [value_] if is_list_type(get_nullable_type(value.type)) else value_

    def _id(self, name: str, ids: Mapping[str, str]) -> str:
        id_type = self._id_type(name)
        if id_type in SAME_FOR_ALL:
            return SAME_FOR_ALL[id_type]
        if id_type not in ids:
            raise MissingArgumentValue(
                f"{self} takes {name}, the id of a {id_type}. Create one in tests/resolvers/organization_scenario.py."
            )
        return ids[id_type]


def root_fields() -> list[RootField]:
    """Returns every root field of the schema."""
    roots = (schema._schema.query_type, schema._schema.mutation_type, schema._schema.subscription_type)
    fields = [RootField(root.name, name, field) for root in roots if root for name, field in root.fields.items()]
    omitted_types = {
        "createPost": frozenset({"QuotedPost"}),  # A reply does not quote.
        # `Job` is a post, of which webhooks send nothing.
        **dict.fromkeys(("createWebhook", "updateWebhook"), frozenset({"Job"})),
    }
    return [replace(each, omitted_types=omitted_types.get(each.name, frozenset())) for each in fields]


@cache
def selection(type_: object, depth: int) -> str:
    """Returns a selection of every field, nested to `depth` levels. Scalars and enums have no selection."""
    if isinstance(type_, GraphQLUnionType):
        parts = [f"... on {member.name} {selection(member, depth)}" for member in type_.types]
    elif isinstance(type_, GraphQLObjectType | GraphQLInterfaceType):
        parts = [_field_selection(name, field, depth) for name, field in type_.fields.items()]
    else:
        return ""
    return f"{{ __typename {' '.join(parts)} }}"


def _field_selection(name: str, field: GraphQLField, depth: int) -> str:
    if is_leaf_type(get_named_type(field.type)):
        return name
    if depth == 1:
        return ""
    arguments = '(latest: "now")' if "latest" in field.args else ""
    return f"{name}{arguments} {selection(get_named_type(field.type), depth - 1)}"
