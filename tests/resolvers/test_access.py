"""Access rights: every root field against every kind of viewer (docs/semantics.md, 2 and 8)."""

from contextlib import aclosing

import pytest

from storage.identity.roles import INCLUDED_ROLES, Role
from tests.resolvers.operations import RootField, root_fields
from tests.resolvers.organization_scenario import OrganizationScenario, create_organization
from tests.resolvers.people import Person, SignIn

pytestmark = pytest.mark.anyio

# The outsider is a member of another community of the organization. Operator and admin have joined no community, so the
# table shows the rights of a role alone. "." is permitted, U is UNAUTHENTICATED, F is FORBIDDEN,
# N is NOT_FOUND.
DECISIONS = {
    # field                          anonymous outsider operator service admin member author
    "Query.viewer":                  ". . . . . . .",
    "Query.user":                    "U . . . . . .",
    "Query.users":                   "U . . F . . .",
    "Query.blockedUsers":            "U . . . . . .",
    "Query.mySessions":              "U . . . . . .",
    "Mutation.endSession":           "U N N N N N .",
    "Mutation.endOtherSessions":     "U . . . . . .",
    "Query.communities":             "U . . F . . .",
    "Query.community":               "U . . F . . .",
    "Query.topic":                   "U . . F . . .",
    "Query.communityTopics":         "U . . F . . .",
    "Query.message":                 "U F F F F . .",
    "Query.messages":                "U F F F F . .",
    "Query.messagesAround":          "U F F F F . .",
    "Query.trendingTopics":          "U . . F . . .",
    "Query.stamps":                  ". . . . . . .",
    "Query.reactionsReceived":       "U . . F . . .",
    "Query.homeFeed":                "U . . F . . .",
    "Query.localFeed":               "U . . F . . .",
    "Query.post":                    "U . . F . . .",
    "Query.posts":                   "U . . F . . .",
    "Query.hashtagPosts":            "U . . F . . .",
    "Query.notifications":           "U . . F . . .",
    "Query.unreadNotificationCount": "U . . F . . .",
    "Query.connectedAccounts":       "U F . F . F .",
    "Query.scheduledPost":           "U F . F . F .",
    "Query.scheduledPosts":          "U . . F . . .",
    "Query.addressBook":             "U F . . . F .",
    "Query.domainStandings":         "U F . . . F .",
    "Query.bounceRates":             "U F . . . F .",
    "Query.callJob":                 "U F . F . F .",
    "Query.callJobs":                "U F . F . F .",
    "Query.callLimits":              "U F . F . F .",
    "Query.doNotCall":               "U F . F . F .",
    "Query.checkCallList":           "U F . F . F .",
    "Mutation.createCommunity":      "U . . F . . .",
    "Mutation.joinCommunity":        "U . . F . . .",
    "Mutation.leaveCommunity":       "U . . F . . .",
    "Query.communityMembers":        "U . . F . . .",
    "Query.joinRequests":            "U F F F . F .",
    "Query.contentReports":          "U F F F . F .",
    "Query.contentReport":           "U N N F . N .",
    "Mutation.reportContent":        "U F F F F . .",
    "Mutation.decideContentReport":  "U N N F . N .",
    "Subscription.contentReportEvents": "U F F F . F .",
    "Mutation.updateCommunity":      "U F F F F F .",
    "Mutation.archiveCommunity":     "U F F F F F .",
    "Mutation.unarchiveCommunity":   "U F F F F F .",
    "Mutation.pinMessage":           "U F F F . F .",
    "Mutation.unpinMessage":         "U F F F . F .",
    "Mutation.setSlowMode":          "U F F F . F .",
    "Mutation.requestToJoin":        "U . . F . . .",
    "Mutation.decideJoinRequest":    "U F F F . F .",
    "Mutation.addMember":            "U F F F . F .",
    "Query.communityBans":           "U F F F . F .",
    "Mutation.setCommunityRole":     "U F F F F F .",
    "Mutation.kickMember":           "U F F F . F .",
    "Mutation.banMember":            "U F F F . F .",
    "Mutation.unbanMember":          "U F F F . F .",
    "Mutation.muteMember":           "U F F F . F .",
    "Mutation.unmuteMember":         "U F F F . F .",
    "Query.organizationUsers":      "U F F F . F .",
    "Query.auditLog":               "U F F F . F .",
    "Query.serviceKeys":           "U F F F . F .",
    "Mutation.createServiceKey":   "U F F F . F .",
    "Mutation.rotateServiceKey":   "U F F F . F .",
    "Mutation.revokeServiceKey":   "U F F F . F .",
    "Mutation.setUserRoles":        "U F F F . F .",
    "Mutation.deactivateUser":      "U F F F . F .",
    "Mutation.reactivateUser":      "U F F F . F .",
    "Query.invitations":            "U F F F . F .",
    "Mutation.createInvitation":    "U F F F . F .",
    "Mutation.revokeInvitation":    "U F F F . F .",
    "Mutation.acceptInvitation":    "U . . . . . .",
    "Query.myDataExport":          "U . . . . . .",
    "Mutation.exportMyData":       "U . . . . . .",
    "Query.erasures":              "U F F F . F .",
    "Mutation.eraseUser":          "U F F F . F .",
    "Mutation.createTopic":          "U F F F F . .",
    "Mutation.postMessage":          "U F F F F . .",
    "Mutation.editMessage":          "U F F F F F .",
    "Mutation.deleteMessage":        "U F F F . F .",
    "Mutation.addReaction":          "U F F F F . .",
    "Mutation.removeReaction":       "U F F F F . .",
    "Mutation.markRead":             "U F F F F . .",
    "Mutation.blockUser":            "U . . F . . .",
    "Mutation.unblockUser":          "U . . F . . .",
    "Mutation.connectAccount":       "U F . F . F .",
    "Mutation.disconnectAccount":    "U F . F . F .",
    "Mutation.schedulePost":         "U F F F F F .",
    "Mutation.updateScheduledPost":  "U F F F F F .",
    "Mutation.cancelScheduledPost":  "U F . F . F .",
    "Mutation.resolvePublication":   "U F . F . F .",
    "Mutation.follow":               "U . . F . . .",
    "Mutation.unfollow":             "U . . F . . .",
    "Mutation.createPost":           "U . . F . . .",
    "Mutation.deletePost":           "U F F F . F .",
    "Mutation.markNotificationsRead": "U . . F . . .",
    "Subscription.homeFeedEvents":   "U . . F . . .",
    "Subscription.notificationEvents": "U . . F . . .",
    "Mutation.recordDeliveries":     "U F F . F F .",
    "Mutation.unblockAddress":       "U F . F . F .",
    "Mutation.setDomainBlocked":     "U F . F . F .",
    "Mutation.setCallLimits":        "U F F F . F .",
    "Mutation.launchCallJob":        "U F . F . F .",
    "Mutation.pauseCallJob":         "U F . F . F .",
    "Mutation.resumeCallJob":        "U F . F . F .",
    "Mutation.cancelCallJob":        "U F . F . F .",
    "Mutation.addDoNotCall":         "U F . F . F .",
    "Mutation.removeDoNotCall":      "U F . F . F .",
    "Mutation.reportCall":           "U F F . F F .",
    "Subscription.topicEvents":      "U F F F F . .",
    "Subscription.communityEvents":  "U . . F . . .",
    "Subscription.jobEvents":        "U F F F F F .",
}  # fmt: skip

NOT_REPEATABLE = {"cancelScheduledPost", "resolvePublication", "decideContentReport"}
"""Fields whose second call with the same ids is a CONFLICT, even if another viewer calls."""

CODES = {None: ".", "UNAUTHENTICATED": "U", "FORBIDDEN": "F", "NOT_FOUND": "N"}


async def viewers_of(sign_in: SignIn, organization: OrganizationScenario) -> dict[str, Person]:
    """Returns a viewer for each column of the table, by the name of the column."""
    outsider = await sign_in("outsider", organization.mark)
    await outsider.create_community("Another one")
    return {
        "anonymous": Person(organization.stores),
        "outsider": outsider,
        "operator": await sign_in("operator", organization.mark, [Role.OPERATOR]),
        "service": await sign_in("service", organization.mark, [Role.SERVICE]),
        "admin": await sign_in("admin", organization.mark, [Role.ADMIN]),
        "member": organization.cat,
        "author": organization.ann,
    }


async def decision(person: Person, field: RootField, ids: dict[str, str]) -> str:
    """Returns the outcome of a call as a letter of the table."""
    query, variables = field.text(depth=1), field.variables(ids)
    if field.root == "Subscription":
        async with aclosing(person.answers(query, **variables)) as answers:
            errors = (await anext(answers))["errors"]
    else:
        errors = (await person.execute(query, **variables))["errors"]
    code = errors[0]["extensions"]["code"] if errors else None
    return CODES.get(code, f"{code}!")


def test_the_table_has_every_field_and_no_other() -> None:
    assert {str(field) for field in root_fields()} == set(DECISIONS), (
        "Add the field to the table above, with its access rights."
    )


async def test_each_role_may_do_exactly_what_the_table_says(sign_in: SignIn) -> None:
    organization = await create_organization(sign_in, "acme")
    people = await viewers_of(sign_in, organization)
    decisions = {}
    for field in root_fields():
        ids = await organization.renew(field.id_types)
        letters = []
        for person in people.values():
            letters.append(await decision(person, field, ids))
            if field.name in NOT_REPEATABLE and letters[-1] == ".":
                ids = await organization.renew(field.id_types)
        decisions[str(field)] = " ".join(letters)
        if field.name in ("joinCommunity", "requestToJoin"):
            for name in ("outsider", "operator", "admin"):
                await people[name].leave(organization.ids["Community"])
    assert decisions == {str(field): DECISIONS[str(field)] for field in root_fields()}


async def test_token_with_several_roles_has_rights_of_each(sign_in: SignIn) -> None:
    organization = await create_organization(sign_in, "acme")
    both = await sign_in("both", organization.mark, [Role.SERVICE, Role.MEMBER])
    assert await both.code("{ communities { id } }") is None


async def test_rights_follow_token_roles_not_stored_roles(sign_in: SignIn) -> None:
    organization = await create_organization(sign_in, "acme")
    former_admin = await sign_in("dan", organization.mark, [Role.ADMIN])
    await sign_in("dan", organization.mark, [Role.MEMBER])
    delete = "mutation ($id: ID!) { deleteMessage(id: $id) { id } }"
    assert await former_admin.code(delete, id=organization.ids["Message"]) is None
    member = await sign_in("dan", organization.mark, [Role.MEMBER])
    assert await member.code(delete, id=organization.ids["Message"]) == "FORBIDDEN"


def test_roles_include_lower_roles_except_service() -> None:
    assert {
        Role.MEMBER: {Role.MEMBER},
        Role.OPERATOR: {Role.OPERATOR, Role.MEMBER},
        Role.ADMIN: {Role.ADMIN, Role.OPERATOR, Role.MEMBER},
        Role.SERVICE: {Role.SERVICE},
    } == INCLUDED_ROLES
