"""A person whose name, handle, addresses and texts hold a word that nobody else uses."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from graphql import (
    FieldNode,
    GraphQLArgument,
    GraphQLInputField,
    GraphQLInputObjectType,
    OperationDefinitionNode,
    get_named_type,
    parse,
    value_from_ast_untyped,
)

from resolvers.context import Context, RequestClient
from storage.feed.content_reports.records import ContentReportSubject, content_report_id
from storage.files.link_previews import LinkPreview
from storage.identity.accounts.invitations import NewInvitation
from storage.identity.accounts.local_accounts import MailLanguage
from storage.identity.audit import Actor, command_line_actor
from storage.identity.passkeys.records import NewPasskey
from storage.identity.records import User
from storage.identity.roles import Role
from storage.identity.session_records import NewSession, SignInMethod
from storage.ids import UserKey, message_key
from storage.publishing.credentials.connections import ConnectionOwner, PendingConnection
from storage.publishing.networks import Network
from storage.publishing.records import PublishingPhase, VerifiedAccount
from storage.publishing.transitions import MANUAL, BeginAttempt, MarkFailed, MarkPublished, MarkUnknown
from storage.stores import Stores
from tests.resolvers.operations import root_fields
from tests.resolvers.people import DELETE, EDIT, REACT, Answer, Person, SignIn
from tests.stored_strings import ADDRESS, WORD
from tests.twins.push_service import SubscribedBrowser

EMAIL = f"{WORD}@Example.net"
"""The mail address as the identity provider writes it. The product stores addresses of invitations in lower case."""

EARLIER_EMAIL = f"early.{WORD}@Example.net"

CONNECT = "mutation ($input: ConnectAccountInput!) { done: connectAccount(input: $input) { id } }"
CONNECT_IN_BROWSER = """
mutation ($input: ConnectAccountInBrowserInput!) { connectAccountInBrowser(input: $input) { url } }
"""
REPLACE = """
mutation ($input: ReplaceAccountCredentialsInput!) { replaceAccountCredentials(input: $input) { id } }
"""
SCHEDULE = "mutation ($input: SchedulePostInput!) { done: schedulePost(input: $input) { id } }"
SCHEDULE_LOCAL = """
mutation ($input: SchedulePostAtLocalTimeInput!) { done: schedulePostAtLocalTime(input: $input) { id } }
"""
UPDATE = """
mutation ($id: ID!, $input: UpdateScheduledPostInput!) { updateScheduledPost(id: $id, input: $input) { id } }
"""
RESOLVE = """
mutation ($id: ID!, $externalId: String!, $url: String!) {
  resolvePublication(id: $id, published: true, externalId: $externalId, url: $url) { id }
}
"""
RETRY = "mutation ($id: ID!) { retryPublication(publicationId: $id) { id } }"
RENAME_PASSKEY = "mutation ($id: ID!, $name: String!) { renamePasskey(id: $id, name: $name) { id } }"
UNBLOCK = """
mutation ($address: String!, $reason: String!) { unblockAddress(address: $address, reason: $reason) { address } }
"""
BLOCK_DOMAIN = """
mutation ($reason: String!) { setDomainBlocked(domain: "example.org", blocked: true, reason: $reason) { domain } }
"""
BLOCK_ADDRESSES = """
mutation ($addresses: [String!]!, $reason: String!) {
  blockAddresses(addresses: $addresses, reason: $reason) { address }
}
"""
UNBLOCK_ADDRESSES = """
mutation ($addresses: [String!]!, $reason: String!) {
  unblockAddresses(addresses: $addresses, reason: $reason) { address }
}
"""
SET_POLICY = """
mutation ($reason: String!) { setMailPolicy(policy: {hardBounces: 2}, afterVersion: 0, reason: $reason) { version } }
"""
RECORD = "mutation ($events: [DeliveryEventInput!]!) { recordDeliveries(events: $events) { accepted } }"
MARK_READ = "mutation ($topic: ID!, $at: Timestamp!) { markRead(topicId: $topic, timestamp: $at) { id } }"
MARK_NOTIFICATIONS = "mutation ($at: Timestamp!) { markNotificationsRead(timestamp: $at) }"
BAN = """
mutation ($community: ID!, $user: ID!, $reason: String!) {
  banMember(communityId: $community, userId: $user, reason: $reason) { until }
}
"""
ASK = """
mutation ($community: ID!, $message: String!) { requestToJoin(communityId: $community, message: $message) { id } }
"""
LISTED = "mutation ($id: ID!) { updateCommunity(id: $id, visibility: LISTED) { id } }"
REPORT = """
mutation ($id: ID!, $text: String!) {
  reportContent(subject: MESSAGE, subjectId: $id, category: HARASSMENT, text: $text)
}
"""
DECIDE = """
mutation ($id: ID!, $note: String!) {
  decideContentReport(contentReportId: $id, decision: WARN, note: $note) { id }
}
"""
DEACTIVATE = "mutation ($user: ID!, $reason: String!) { deactivateUser(userId: $user, reason: $reason) { id } }"
END_SESSIONS = "mutation ($user: ID!, $reason: String!) { endUserSessions(userId: $user, reason: $reason) }"

EDIT_POST = "mutation ($id: ID!, $text: String!) { done: editPost(id: $id, text: $text) { id } }"
REACT_TO_POST = 'mutation ($id: ID!) { addPostReaction(postId: $id, emoji: "🐟") { id } }'
REPOST = "mutation ($id: ID!) { repost(postId: $id) { id } }"
CHANGE_HANDLE = "mutation ($handle: String!) { changeHandle(handle: $handle) { id } }"
UPDATE_PROFILE = """
mutation ($name: String!, $bio: String!) { updateProfile(input: { name: $name, bio: $bio }) { name bio } }
"""
CHOOSE_DIGESTS = "mutation { setNotificationSettings(input: { digest: DAILY }) { digest } }"
REGISTER = "mutation ($input: RegisterPushDeviceInput!) { registerPushDevice(input: $input) { id } }"
ADD_TO_LIBRARY = "mutation ($id: ID!, $text: String!) { addToLibrary(uploadId: $id, altText: $text) { id } }"
UPLOAD = "mutation ($input: CreateUploadInput!) { done: createUpload(input: $input) { fileId } }"
START = "mutation ($input: StartConversationInput!) { done: startConversation(input: $input) { id } }"
_ORGANIZATION = "Belongs to the organization, which keeps it (docs/privacy.md, What remains)."
_CALLED = "Belongs to people who are called, whose numbers a retention rule removes."
_NO_TEXT = "Not stored, or only if it is one of a few values."
_NO_WORDS = "A key of the browser, deleted together with the endpoint."
TEXTS_WITHOUT_PERSON = {
    "acceptInvitation.token": _NO_TEXT,
    "addDoNotCall.phoneNumbers": _CALLED,
    "addPostReaction.emoji": _NO_TEXT,
    "addReaction.emoji": _NO_TEXT,
    "addStamp.input.name": _ORGANIZATION,
    "createCommunity.input.description": _ORGANIZATION,
    "createCommunity.input.name": _ORGANIZATION,
    "createInvitation.input.email": "The address of another person.",
    "createServiceKey.input.name": _ORGANIZATION,
    "createStampPack.name": _ORGANIZATION,
    "createWebhook.input.eventTypes": _NO_TEXT,
    "createWebhook.input.name": _ORGANIZATION,
    "createWebhook.input.url": _ORGANIZATION,
    "createServiceKey.input.scopes": _NO_TEXT,
    "createTopic.input.title": _ORGANIZATION,
    "createUpload.input.contentType": _NO_TEXT,
    "eraseUser.handle": _NO_TEXT,
    "launchCallJob.input.csv": _CALLED,
    "launchCallJob.input.defaultRegion": _NO_TEXT,
    "launchCallJob.input.name": _ORGANIZATION,
    "launchCallJob.input.scenario": _ORGANIZATION,
    "launchCallJob.input.window.end": _NO_TEXT,
    "launchCallJob.input.window.start": _NO_TEXT,
    "launchCallJob.input.window.timeZone": _NO_TEXT,
    "recordDeliveries.events.enhancedStatus": _NO_TEXT,
    "removeDoNotCall.phoneNumbers": _CALLED,
    "reportCall.input.recordingUrl": _CALLED,
    "registerPushDevice.input.authSecret": _NO_WORDS,
    "registerPushDevice.input.publicKey": _NO_WORDS,
    "removePostReaction.emoji": _NO_TEXT,
    "removeReaction.emoji": _NO_TEXT,
    "removeStamp.stampName": _ORGANIZATION,
    "renameConversation.name": "Belongs to the people of the group.",
    "renameTopic.title": _ORGANIZATION,
    "schedulePost.input.timeZone": _NO_TEXT,
    "schedulePostAtLocalTime.input.timeZone": _NO_TEXT,
    "setNotificationSettings.input.quietHours.end": _NO_TEXT,
    "setNotificationSettings.input.quietHours.start": _NO_TEXT,
    "setNotificationSettings.input.quietHours.timeZone": _NO_TEXT,
    "setDomainBlocked.domain": "The domain of an organization.",
    "startConversation.input.groupName": "Belongs to the people of the group.",
    "updateCommunity.description": _ORGANIZATION,
    "updateCommunity.name": _ORGANIZATION,
    "updateScheduledPost.input.timeZone": _NO_TEXT,
    "updateWebhook.input.eventTypes": _NO_TEXT,
    "updateWebhook.input.name": _ORGANIZATION,
    "updateWebhook.input.url": _ORGANIZATION,
}
"""Texts of mutations that an erasure need not find, with the reason."""


async def _name_account(_network: Network, _base_url: str | None, _secret: str) -> VerifiedAccount:
    """Names the account as a network does."""
    return VerifiedAccount(f"{WORD} id", f"@{WORD}@{WORD}.example")


@dataclass
class CanaryPerson(Person):
    """A person with a recognizable client. `used_arguments` are those in which the person has used the word."""

    used_arguments: set[str] = field(default_factory=set)
    mastodon_url: str = f"https://{WORD}.example"
    """Address of the Mastodon server at which the person has an account."""

    @property
    def organization_id(self) -> str:
        assert self.user is not None
        return self.user.organization_id

    @property
    def context(self) -> Context:
        client = RequestClient(ADDRESS, f"{WORD} browser")
        return replace(super().context, client=client, verify_account=_name_account)

    async def execute(self, query: str, /, **variables: Any) -> Answer:
        """Executes an operation, and notes the arguments that hold the word."""
        self.used_arguments |= set(arguments_with_word(query, variables))
        return await super().execute(query, **variables)


def arguments_with_word(query: str, variables: dict[str, Any]) -> Iterator[str]:
    """Yields the arguments of a mutation that hold the word, such as `postMessage.input.text`."""
    operation = parse(query).definitions[0]
    assert isinstance(operation, OperationDefinitionNode)
    for root_field in operation.selection_set.selections:
        assert isinstance(root_field, FieldNode)
        for argument in root_field.arguments or ():
            value = value_from_ast_untyped(argument.value, variables)
            yield from _paths_with_word(f"{root_field.name.value}.{argument.name.value}", value)


def _paths_with_word(path: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _paths_with_word(f"{path}.{name}", each)
    elif isinstance(value, list):
        for each in value:
            yield from _paths_with_word(path, each)
    elif isinstance(value, str) and WORD in value:
        yield path


def text_arguments() -> Iterator[str]:
    """Yields every argument of a mutation that takes a text, except for idempotency keys, which expire."""
    for root_field in root_fields():
        if root_field.root == "Mutation":
            for name, argument in root_field.field.args.items():
                yield from _text_paths(f"{root_field.name}.{name}", argument)


def _text_paths(path: str, argument: GraphQLArgument | GraphQLInputField) -> Iterator[str]:
    type_ = get_named_type(argument.type)
    if isinstance(type_, GraphQLInputObjectType):
        for name, each in type_.fields.items():
            yield from _text_paths(f"{path}.{name}", each)
    elif type_.name == "String" and not path.endswith(".idempotencyKey"):
        yield path


CanaryFactory = Callable[[Stores, User | None, frozenset[Role]], CanaryPerson]


async def create_canary(
    stores: Stores, organization: str = "acme", person: CanaryFactory = CanaryPerson
) -> tuple[CanaryPerson, Person]:
    """Returns a person who has used every feature, and Bob, whose data refer to the person."""
    sign_in, roles = SignIn(stores), [Role.MEMBER, Role.OPERATOR]
    await stores.users.sign_in(organization, "user-1", [*roles, Role.ADMIN], f"{WORD} Q", f"{WORD}_early", EMAIL)
    signed_in = await sign_in("user-1", organization, [*roles, Role.ADMIN])
    canary = person(stores, signed_in.user, signed_in.roles)
    await canary.run(CHANGE_HANDLE, handle=f"{WORD}_q")
    bob, eve = await sign_in("bob", organization), await sign_in("eve", organization)
    await _administer(canary, await sign_in("zed", organization))
    canary = replace(canary, roles=frozenset(roles))
    await stores.users.sign_in(organization, "user-1", roles, f"{WORD} Q", f"{WORD}_q", EMAIL)
    await _local_account(stores, canary, organization)
    await _chat(stores, canary, bob, eve)
    await _feed(canary, bob)
    await _publish(stores, canary)
    await _mail(canary)
    for address in (EARLIER_EMAIL, EMAIL):
        claims = (roles, f"{WORD} Q", f"{WORD}_q", address)
        user = await stores.users.sign_in(organization, "user-1", *claims, is_email_verified=True)
        await _invite(stores, user, is_accepted=address is EARLIER_EMAIL)
    return canary, bob


async def _administer(canary: CanaryPerson, zed: Person) -> None:
    key = UserKey(canary.organization_id, zed.id)
    await canary.stores.sessions.begin(NewSession(key, SignInMethod.DEMO))
    await canary.run(END_SESSIONS, user=zed.id, reason=f"{WORD} reason")
    await canary.run(DEACTIVATE, user=zed.id, reason=f"{WORD} reason")


async def _upload(canary: CanaryPerson) -> str:
    """Uploads a file that is ready to be attached, and returns its id."""
    data = f"{WORD} words".encode()
    created = (await canary.run(UPLOAD, input={"fileName": f"{WORD}.txt", "size": len(data)}))["done"]
    owner = UserKey(canary.organization_id, canary.id)
    await canary.stores.uploads.append(await canary.stores.uploads.get(owner, created["fileId"]), data)
    while (file := await canary.stores.file_checks.claim()) is not None:
        await canary.stores.file_checks.accept(file, "text/plain")
    return str(created["fileId"])


async def _mail(canary: CanaryPerson) -> None:
    """Decides about addresses as an operator. A mail server reports mail to the person."""
    event = {"eventId": f"{WORD}-1", "address": EMAIL, "at": datetime.now(UTC).isoformat(), "smtpCode": 550}
    texts = {"enhancedStatus": "5.1.1", "diagnostic": f"{WORD} is unknown", "messageId": f"{WORD}-2"}
    await replace(canary, roles=frozenset({Role.SERVICE})).run(RECORD, events=[{**event, **texts}])
    await canary.run(UNBLOCK, address=EMAIL, reason=f"{WORD} asked for it")
    await canary.run(BLOCK_DOMAIN, reason=f"{WORD} asked for it")
    await canary.run(BLOCK_ADDRESSES, addresses=[EMAIL], reason=f"{WORD} asked again")
    await canary.run(UNBLOCK_ADDRESSES, addresses=[EMAIL], reason=f"{WORD} asked once more")
    await canary.run(BLOCK_ADDRESSES, addresses=[f"other{EMAIL}"], reason=f"{WORD} asked too")
    await canary.run(SET_POLICY, reason=f"{WORD} asked for it")


async def _local_account(stores: Stores, canary: CanaryPerson, organization: str) -> None:
    """Stores the documents of a local account, and a link for its address."""
    address, until = {"org": organization, "address": EMAIL.lower()}, datetime.now(UTC) + timedelta(days=1)
    account = {"_id": {"org": organization, "id": "user-1"}, "address": address["address"], "hash": "x"}
    times = {"language": "en", "password_at": until, "at": until}
    await stores.mongo["local_accounts"].insert_one({**account, **times})
    passkey = NewPasskey(organization.encode(), f"{WORD} {organization}".encode(), b"key", 0, True, f"{WORD} phone")
    added = await stores.passkeys.add(Actor(organization, "user-1"), passkey)
    await canary.run(RENAME_PASSKEY, id=added.id, name=f"{WORD} key")
    link = {"_id": f"{organization}-1", **address, "digest": organization, "expires_at": until}
    await stores.mongo["account_tokens"].insert_one(link)


async def _invite(stores: Stores, user: User, *, is_accepted: bool) -> None:
    """Creates an invitation for the person's mail address, and the mail of its link."""
    actor, address = command_line_actor(user.organization_id), (user.email or "").lower()
    new = NewInvitation(Role.MEMBER, None, address, 1, timedelta(days=1), MailLanguage.EN)
    created = await stores.invitations.create(actor, new, None)
    if is_accepted:
        await stores.invitations.accept(Actor(user.organization_id, user.id), created.token or "", user)
    # An earlier release stored the address.
    entry = {"org": user.organization_id, "target": created.invitation.id, "action": "INVITATION_CREATED"}
    await stores.mongo["audit"].update_one(entry, {"$set": {"details.address": address}})


async def _chat(stores: Stores, canary: CanaryPerson, bob: Person, eve: Person) -> None:
    own = await canary.create_community("Fishers", idempotencyKey=f"{WORD}-key")
    topic = await canary.create_topic(own, "Tides")
    await bob.join(own)
    text = f"{WORD} @bob https://example.org/{WORD}"
    attachment = {"uploadId": await _upload(canary), "altText": f"{WORD} hill"}
    await canary.run(ADD_TO_LIBRARY, id=await _upload(canary), text=f"{WORD} tower")
    message = await canary.post(topic, text, stampId="hello", idempotencyKey=f"{WORD}-key-2", attachments=[attachment])
    url = f"https://example.org/{WORD}"
    preview = LinkPreview(url, f"{WORD} title", f"{WORD} words", f"{url}.png", WORD)
    await stores.messages.set_preview(message_key(message["id"]), url, preview)
    edited = await canary.post(topic, f"{WORD} first")
    await canary.do(EDIT, id=edited["id"], text=f"{WORD} second")
    await canary.do(DELETE, id=(await canary.post(topic, f"{WORD} third"))["id"])
    bobs_message = await bob.post(topic, "Hello")
    await canary.do(REACT, id=bobs_message["id"], emoji="🐟")
    await bob.do(REACT, id=message["id"], emoji="🦀")
    await canary.post(topic, f"{WORD} reply", replyTo=bobs_message["id"])
    await canary.post(topic, f"{WORD} quoting", quotedMessageId=bobs_message["id"])
    await canary.run(MARK_READ, topic=topic, at=bobs_message["timestamp"])
    await eve.join(own)
    await _upload(canary)
    await _moderate(canary, bob, eve, topic)
    await canary.run(BAN, community=own, user=eve.id, reason=f"{WORD} reason")
    other = await bob.create_community("Sailors")
    await bob.run(LISTED, id=other)
    await canary.run(ASK, community=other, message=f"{WORD} please")
    await _write_directly(canary, bob, eve)


async def _write_directly(canary: CanaryPerson, bob: Person, eve: Person) -> None:
    """Sends Bob a direct message. Eve, who is a stranger now, starts a group with the person and Bob."""
    pair = (await canary.do(START, input={"userIds": [bob.id]}))["id"]
    await canary.post(pair, f"{WORD} direct")
    await bob.post(pair, "Hello")
    await eve.post((await eve.do(START, input={"userIds": [canary.id, bob.id]}))["id"], "Boat?")


async def _moderate(canary: CanaryPerson, bob: Person, eve: Person, topic: str) -> None:
    """Decides the report of a message that Eve filed, and reports another message."""
    rude, loud = await bob.post(topic, "Rude"), await bob.post(topic, "Loud")
    await eve.run(REPORT, id=rude["id"], text="Rude")
    report = content_report_id(canary.organization_id, ContentReportSubject.MESSAGE, rude["id"], eve.id)
    await canary.run(DECIDE, id=report, note=f"{WORD} note")
    await canary.run(REPORT, id=loud["id"], text=f"{WORD} report")


async def _feed(canary: CanaryPerson, bob: Person) -> None:
    await canary.follow(bob)
    await bob.follow(canary)
    attachments = [{"uploadId": await _upload(canary), "altText": f"{WORD} hill"}]
    media = [f"https://example.org/{WORD}.png"]
    post = await canary.create_post(f"{WORD} #{WORD} @bob", mediaUrls=media, attachments=attachments)
    await canary.run(EDIT_POST, id=post, text=f"{WORD} changed")
    bobs_post = await bob.create_post("Hello")
    for act in (REACT_TO_POST, REPOST):
        await canary.run(act, id=bobs_post)
        await bob.run(act, id=post)
    await canary.create_post(f"{WORD} reply", inReplyTo=bobs_post)
    await canary.create_post(f"{WORD} about", quoteOf=bobs_post)
    await canary.run(MARK_NOTIFICATIONS, at="1.000000")
    endpoint = f"https://push.example/{WORD}/{canary.organization_id}"
    await canary.run(REGISTER, input=SubscribedBrowser(endpoint).input)
    await canary.run(CHOOSE_DIGESTS)
    await canary.run(UPDATE_PROFILE, name=f"{WORD} chosen", bio=f"{WORD} fishes")


async def _begin_connection(stores: Stores, canary: CanaryPerson) -> None:
    """Leaves a connection in the browser unfinished. Stores one itself, too: not every canary has a real server."""
    name, address = f"{WORD} account", canary.mastodon_url
    await canary.run(CONNECT_IN_BROWSER, input={"network": "MASTODON", "baseUrl": address, "name": name})
    owner = ConnectionOwner(UserKey(canary.organization_id, canary.id), None)
    pending = PendingConnection(Network.MASTODON, name, address, None, WORD, WORD, WORD)
    await stores.account_connections.begin(owner, pending)


async def _publish(stores: Stores, canary: CanaryPerson) -> None:
    """Connects accounts, and publishes four posts: one succeeds, two have an unknown outcome, and one fails.

    Also schedules and edits a fourth post, and schedules a fifth one with a file.
    """
    mastodon = {"network": "MASTODON", "baseUrl": canary.mastodon_url, "credentials": f"{WORD}-token"}
    connected = await canary.do(CONNECT, input={**mastodon, "name": f"{WORD} account"})
    await canary.run(REPLACE, input={"accountId": connected["id"], "credentials": f"{WORD}-next-token"})
    await _begin_connection(stores, canary)
    secret = {"network": "SANDBOX", "name": f"{WORD} account", "credentials": "ok"}
    account = (await canary.do(CONNECT, input=secret))["id"]
    common = {"text": f"{WORD} text", "toAccountIds": [account], "timeZone": "UTC"}
    due = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    for _ in range(4):
        await canary.do(SCHEDULE, input={**common, "dueAt": due})
    first, second, third, failed = [
        await stores.scheduled_posts.apply(BeginAttempt(claim, PublishingPhase.CALLING, claim.id))
        for claim in await stores.claims.claim(10)
    ]
    posts = stores.mongo["sandbox_posts"]
    await posts.insert_one({"_id": {"account": account, "key": first.id}, "id": "1", "text": f"{WORD} text"})
    await stores.scheduled_posts.apply(MarkPublished(first, WORD, f"https://example.org/{WORD}", WORD))
    for unknown in (second, third):
        await stores.scheduled_posts.apply(MarkUnknown(unknown, f"{WORD} is silent", MANUAL))
    await stores.scheduled_posts.apply(MarkFailed(failed, "REFUSED", f"{WORD} is refused"))
    await canary.run(RETRY, id=failed.id)
    (retried,) = await stores.claims.claim(10)
    await stores.scheduled_posts.apply(MarkFailed(retried, "REFUSED", f"{WORD} is refused again"))
    await canary.run(RESOLVE, id=third.id, externalId=f"{WORD}-3", url=f"https://example.org/{WORD}-3")
    media = [{"url": f"https://example.org/{WORD}.png", "altText": f"{WORD} hill"}]
    planned = {**common, "media": media, "dueAt": "2030-01-01T00:00:00Z", "toHomeFeed": True}
    later = await canary.do(SCHEDULE, input=planned)
    await canary.run(UPDATE, id=later["id"], input={"text": f"{WORD} text", "media": media})
    attachments = [{"uploadId": await _upload(canary), "altText": f"{WORD} hill"}]
    with_file = {"text": f"{WORD} text", "attachments": attachments, "toHomeFeed": True, "dueAt": planned["dueAt"]}
    scheduled = await canary.do(SCHEDULE, input=with_file)
    for content in ({"media": media}, {"attachments": [{"uploadId": await _upload(canary), "altText": f"{WORD} sea"}]}):
        local = {"text": f"{WORD} text", "toHomeFeed": True, "dueAtLocal": "2030-01-01T00:00", "timeZone": "UTC"}
        await canary.do(SCHEDULE_LOCAL, input={**local, **content})
    other = [{"uploadId": await _upload(canary), "altText": f"{WORD} other hill"}]
    await canary.run(UPDATE, id=scheduled["id"], input={"attachments": other})
