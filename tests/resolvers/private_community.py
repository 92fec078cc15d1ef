"""A private community of an organization, which one of its members has left. Each of its texts contains a mark."""

from datetime import timedelta

from storage.feed.content_reports.store import ReportFilter
from storage.identity.accounts.invitations import NewInvitation
from storage.identity.accounts.local_accounts import MailLanguage
from storage.identity.audit import Actor
from storage.identity.roles import Role
from tests.resolvers.organization_scenario import REPORT, OrganizationScenario
from tests.resolvers.people import REACT, until_outbox_is_empty

SCHEDULE = """
mutation ($topic: ID!) {
  schedulePost(input: { text: "Words", toTopicIds: [$topic], dueAt: "2031-01-01T00:00:00Z", timeZone: "UTC" }) { id }
}
"""

HIDDEN = "lagoon"
"""The mark of a private community, in each of its texts."""

HIDDEN_EMOJI = "🦩"


async def create_hidden_community(organization: OrganizationScenario) -> dict[str, str]:
    """Creates a private community of Cat with Dog. Ann has left it. Returns ids of its objects by type."""
    cat, ann, mark = organization.cat, organization.ann, organization.mark
    community = await cat.create_community(f"{HIDDEN} hut", description=HIDDEN, visibility="PRIVATE")
    add = "mutation ($c: ID!, $u: ID!) { addMember(communityId: $c, userId: $u) { role } }"
    for person in (ann, organization.dog):
        await cat.run(add, c=community, u=person.id)
    topic = await cat.create_topic(community, f"{HIDDEN} nook")
    await _invite_to_hidden(organization, community)
    by_ann = await ann.post(topic, f"{HIDDEN} by ann")
    await cat.post(topic, f"{HIDDEN} @{mark}_ann before")
    await cat.run(REACT, id=by_ann["id"], emoji=HIDDEN_EMOJI)
    await ann.run(SCHEDULE, topic=topic)
    reply = await cat.post(topic, f"{HIDDEN} reply", replyTo=by_ann["id"])
    await until_outbox_is_empty(organization.stores)
    await ann.leave(community)
    message = await cat.post(topic, f"{HIDDEN} @{mark}_ann @{mark}_dog https://{HIDDEN}.example/")
    await organization.dog.run(REPORT, id=by_ann["id"], text=HIDDEN)
    reports = await organization.stores.content_reports.list_reports(
        organization.organization_id, ReportFilter(community), None, 1
    )
    await organization.dog.post(topic, f"{HIDDEN} again @{mark}_ann")
    await _moderate_hidden(organization, community, topic, message["id"])
    await until_outbox_is_empty(organization.stores)
    ids = {
        "Community": community,
        "CommunityWithoutOwner": community,
        "Topic": topic,
        "ContentReport": reports[0].id,
        "AnnsMessage": by_ann["id"],
    }
    ids |= {"Thread": reply["topicId"], "Node": ids["Topic"]}
    return {**ids, "Message": message["id"], "Subject": message["id"]}


async def _moderate_hidden(organization: OrganizationScenario, community: str, topic: str, message: str) -> None:
    """Leaves entries of the audit log about the community, its topic, a message, a person, a ban and a report."""
    for act in (
        "muteMember(communityId: $c, userId: $u, until: $at) { role }",
        'banMember(communityId: $c, userId: "yak", reason: $words) { bannedAt }',
        "updateCommunity(id: $c, description: $words) { id }",
        "archiveTopic(topicId: $t) { id }",
        "unarchiveTopic(topicId: $t) { id }",
        "pinMessage(messageId: $m) { id }",
        "unmuteMember(communityId: $c, userId: $u) { id }",
    ):
        types = {"c": "ID!", "u": "ID!", "t": "ID!", "m": "ID!", "words": "String!", "at": "DateTime!"}
        used = {name: type_ for name, type_ in types.items() if f"${name}" in act}
        values = {"c": community, "u": organization.dog.id, "t": topic, "m": message}
        values |= {"words": f"{HIDDEN} words", "at": "2031-01-01T00:00:00Z"}
        declared = ", ".join(f"${name}: {type_}" for name, type_ in used.items())
        await organization.cat.run(f"mutation ({declared}) {{ {act} }}", **{name: values[name] for name in used})


async def _invite_to_hidden(organization: OrganizationScenario, community: str) -> None:
    new = NewInvitation(Role.MEMBER, community, None, 1, timedelta(days=1), MailLanguage.EN)
    actor = Actor(organization.organization_id, organization.cat.id, is_command_line=True)
    await organization.stores.invitations.create(actor, new, None)
