"""Reports of content: who files, sees and decides them, that each is decided once, and what a decision does."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from storage.chat import moderation_changes
from storage.chat.roles import Moderator
from storage.feed.content_reports import changes
from storage.feed.content_reports.changes import ReportRuling
from storage.feed.content_reports.records import (
    ContentReport,
    ContentReportDecision,
    ContentReportSubject,
    content_report_id,
)
from storage.feed.content_reports.store import ReportFilter
from storage.identity.audit import AuditAction, AuditFilter
from storage.identity.roles import Role
from tests.resolvers.people import DELETE, PAGE, Answer, ChatScenario, Person, SignIn, until_outbox_is_empty

pytestmark = pytest.mark.anyio

ANN = Moderator("ann")
REPORT = """
mutation ($subject: ContentReportSubject!, $id: ID!, $text: String! = "") {
  done: reportContent(subject: $subject, subjectId: $id, category: SPAM, text: $text)
}
"""
QUEUE = """
query ($community: ID, $state: ContentReportState, $after: ID, $limit: Int! = 50) {
  done: contentReports(communityId: $community, state: $state, after: $after, limit: $limit) {
    id subject subjectId contentText text state decision outcome note failure
    author { id } reporter { id } decidedBy { id } community { id } messagesBefore { text }
  }
}
"""
DECIDE = """
mutation ($id: ID!, $decision: ContentReportDecision!, $note: String! = "why", $banUntil: DateTime) {
  done: decideContentReport(contentReportId: $id, decision: $decision, note: $note, banUntil: $banUntil) {
    state decision failure decidedBy { id }
  }
}
"""
ONE = "query ($id: ID!) { done: contentReport(id: $id) { reporter { id } } }"
EVENTS = """
subscription ($community: ID, $since: Cursor) {
  contentReportEvents(communityId: $community, since: $since) {
    type: __typename
    ... on Event { cursor }
    ... on ContentReported { report { id state } }
    ... on ContentReportDecided { report { id state } }
  }
}
"""
NOTIFICATIONS = """
{ notifications(latest: "now") { items { kind reportDecision warning actor { id } message { id } post { id } } } }
"""
OUTCOMES = """
{ notifications(latest: "now") { items { reportDecision reportOutcome message { id } } } }
"""
BLOCK = "mutation ($id: ID!) { blockUser(userId: $id) { id } }"
HIDE = """
mutation ($id: ID!, $visibility: CommunityVisibility! = PRIVATE) {
  updateCommunity(id: $id, visibility: $visibility) { id }
}
"""
DEACTIVATE = 'mutation ($id: ID!) { deactivateUser(userId: $id, reason: "left") { id } }'
SET_ROLE = """
mutation ($id: ID!, $user: ID!, $role: CommunityRole!) {
  setCommunityRole(communityId: $id, userId: $user, role: $role) { role }
}
"""


@pytest.fixture
async def carl(chat: ChatScenario, sign_in: SignIn) -> Person:
    """A member who is no moderator."""
    carl = await sign_in("carl")
    await carl.join(chat.community)
    return carl


@pytest.fixture
async def admin(sign_in: SignIn) -> Person:
    """An ADMIN who has joined no community."""
    return await sign_in("zoe", roles=[Role.MEMBER, Role.ADMIN])


async def report(person: Person, subject: str, id_: str, text: str = "") -> None:
    assert await person.run(REPORT, subject=subject, id=id_, text=text) == {"done": True}


async def queue(person: Person, community: str | None = None, **more: Any) -> list[Answer]:
    found: list[Answer] = await person.do(QUEUE, community=community, **more)  # type: ignore[assignment]
    return found


async def notifications(person: Person) -> list[Answer]:
    await until_outbox_is_empty(person.stores)
    items: list[Answer] = (await person.run(NOTIFICATIONS))["notifications"]["items"]
    return items


async def report_new_message(chat: ChatScenario, reporter: Person, author: Person | None = None) -> tuple[str, str]:
    """Posts a message as the author, by default Bob, and reports it. Returns the ids of the message and the report."""
    message = await (author or chat.bob).post(chat.topic, "Buy shoes")
    await report(reporter, "MESSAGE", message["id"])
    report_id = content_report_id("acme", ContentReportSubject.MESSAGE, message["id"], reporter.id)
    return message["id"], report_id


async def test_report_is_stored_once_for_each_reporter(chat: ChatScenario, carl: Person) -> None:
    message = await chat.bob.post(chat.topic, "Buy shoes")
    await asyncio.gather(*(report(carl, "MESSAGE", message["id"], f"spam {n}") for n in range(5)))
    await report(chat.ann, "MESSAGE", message["id"])
    found = await queue(chat.ann, chat.community)
    assert sorted(each["reporter"]["id"] for each in found) == ["ann", "carl"]
    assert {(each["author"]["id"], each["contentText"], each["state"]) for each in found} == {
        ("bob", "Buy shoes", "OPEN")
    }


async def test_decided_report_is_not_opened_again(chat: ChatScenario, carl: Person) -> None:
    message, id_ = await report_new_message(chat, carl)
    await chat.ann.run(DECIDE, id=id_, decision="DISMISS")
    await report(carl, "MESSAGE", message, "again")
    (found,) = await queue(chat.ann, chat.community)
    assert (found["state"], found["text"]) == ("DECIDED", "")


async def test_only_readable_content_of_others_is_reported(chat: ChatScenario, carl: Person) -> None:
    message = await chat.bob.post(chat.topic, "Buy shoes")
    variables = {"subject": "MESSAGE", "id": message["id"]}
    assert await chat.eve.code(REPORT, **variables) == "FORBIDDEN"
    assert await chat.bob.code(REPORT, **variables) == "BAD_USER_INPUT"
    assert await carl.code(REPORT, subject="POST", id=message["id"]) == "NOT_FOUND"
    assert await carl.code(REPORT, subject="USER", id="carl") == "BAD_USER_INPUT"
    await chat.bob.run(DELETE, id=message["id"])
    assert await carl.code(REPORT, **variables) == "CONFLICT"


async def test_subjects_of_another_organization_are_not_found(chat: ChatScenario, sign_in: SignIn) -> None:
    foreigner = await sign_in("foreigner", "globex")
    post = await foreigner.create_post("Elsewhere")
    for subject, id_ in (("POST", post), ("USER", "foreigner"), ("USER", "nobody")):
        assert await chat.ann.code(REPORT, subject=subject, id=id_) == "NOT_FOUND"


async def test_reports_of_another_organization_are_not_found(chat: ChatScenario, carl: Person, sign_in: SignIn) -> None:
    await report(carl, "USER", "bob")
    (found,) = await chat.ann.stores.content_reports.list_reports("acme", ReportFilter(), None, 50)
    foreign_admin = await sign_in("zoe", "umbrella", [Role.MEMBER, Role.ADMIN])
    assert await foreign_admin.code(ONE, id=found.id) == "NOT_FOUND"
    assert await foreign_admin.code(DECIDE, id=found.id, decision="DISMISS") == "NOT_FOUND"


async def test_guessed_id_of_a_report_reveals_nothing(chat: ChatScenario, carl: Person, sign_in: SignIn) -> None:
    """The id of a report can be computed from the ids of its subject and its reporter."""
    dan, eve = await sign_in("dan"), chat.eve
    message, stored = await report_new_message(chat, carl)
    not_stored = content_report_id("acme", ContentReportSubject.MESSAGE, message, "dan")
    own = await eve.create_community("Beacons")
    for person in (chat.bob, carl, dan, eve):
        for query, variables in ((ONE, {}), (DECIDE, {"decision": "WARN"}), (DECIDE, {"decision": "BAN", "note": ""})):
            answers = [str(await person.execute(query, id=id_, **variables)) for id_ in (stored, not_stored)]
            assert answers[0].replace(stored, not_stored) == answers[1]
    answers = [str(await eve.execute(QUEUE, community=own, after=id_)) for id_ in (stored, not_stored)]
    assert answers[0].replace(stored, not_stored) == answers[1]
    assert "NOT_FOUND" in answers[1]


async def test_queues_are_for_moderators_and_admins(chat: ChatScenario, carl: Person, admin: Person) -> None:
    _, message_report = await report_new_message(chat, carl)
    await report(carl, "POST", await chat.bob.create_post("Buy more shoes"))
    await report(carl, "USER", "bob")
    assert [each["subject"] for each in await queue(chat.ann, chat.community)] == ["MESSAGE"]
    assert [each["subject"] for each in await queue(admin)] == ["MESSAGE", "POST", "USER"]
    assert [each["messagesBefore"] for each in await queue(admin)] == [None] * 3
    user_report = (await queue(admin))[-1]["id"]
    for person in (chat.bob, carl, chat.eve):
        assert await person.code(QUEUE, community=chat.community) == "FORBIDDEN"
        assert await person.code(DECIDE, id=message_report, decision="DISMISS") == "NOT_FOUND"
    assert await chat.ann.code(QUEUE) == "FORBIDDEN"
    assert await chat.ann.code(DECIDE, id=user_report, decision="DISMISS") == "NOT_FOUND"


async def test_queue_is_paged_and_filtered(chat: ChatScenario, carl: Person) -> None:
    ids = [(await report_new_message(chat, carl))[1] for _ in range(5)]
    await chat.ann.run(DECIDE, id=ids[0], decision="DISMISS")
    first = await queue(chat.ann, chat.community, limit=2)
    rest = await queue(chat.ann, chat.community, after=first[-1]["id"])
    assert [each["id"] for each in first + rest] == ids
    for state, expected in (("OPEN", ids[1:]), ("DECIDED", ids[:1])):
        assert [each["id"] for each in await queue(chat.ann, chat.community, state=state)] == expected


async def test_block_hides_no_report_from_a_moderator(chat: ChatScenario, carl: Person) -> None:
    await chat.ann.run(BLOCK, id="bob")
    await chat.ann.run(BLOCK, id="carl")
    message = await chat.bob.post(chat.topic, "Buy shoes")
    async with chat.ann.subscribed(EVENTS, community=chat.community) as events:
        await report(carl, "MESSAGE", message["id"])
        assert (await events.next_event())["type"] == "ContentReported"
    assert len(await queue(chat.ann, chat.community)) == 1


async def test_two_moderators_decide_a_report_once(chat: ChatScenario, carl: Person, admin: Person) -> None:
    for _ in range(3):
        _, id_ = await report_new_message(chat, carl)
        answers = await asyncio.gather(
            chat.ann.execute(DECIDE, id=id_, decision="DISMISS"), admin.execute(DECIDE, id=id_, decision="REMOVE")
        )
        codes = [[error["extensions"]["code"] for error in answer["errors"]] for answer in answers]
        assert sorted(codes) == [[], ["CONFLICT"]]
        winner, decision = (chat.ann, "DISMISS") if not codes[0] else (admin, "REMOVE")
        again = await winner.do(DECIDE, id=id_, decision=decision)
        assert (again["decision"], again["decidedBy"]["id"]) == (decision, winner.id)
    entries = await admin.stores.audit.list_entries(
        "acme", AuditFilter(action=AuditAction.CONTENT_REPORT_DECIDED), None, 50
    )
    assert len(entries) == 3
    assert len([each for each in await notifications(carl) if each["kind"] == "REPORT_DECIDED"]) == 3


async def test_removed_message_leaves_the_report_with_its_text(chat: ChatScenario, carl: Person) -> None:
    message, id_ = await report_new_message(chat, carl)
    await report(chat.ann, "MESSAGE", message)
    decided = await chat.ann.do(DECIDE, id=id_, decision="REMOVE")
    assert (decided["state"], decided["failure"]) == ("DECIDED", None)
    assert await chat.ann.texts(chat.topic) == [""]
    found = await queue(chat.ann, chat.community)
    assert {(each["state"], each["decision"], each["contentText"]) for each in found} == {
        ("DECIDED", "REMOVE", "Buy shoes")
    }
    assert [(each["kind"], each["reportDecision"], each["warning"]) for each in await notifications(carl)] == [
        ("REPORT_DECIDED", "REMOVE", None)
    ]


async def test_warned_person_reads_the_note_but_not_who_wrote_it(chat: ChatScenario, carl: Person) -> None:
    message, id_ = await report_new_message(chat, carl)
    await chat.bob.leave(chat.community)
    await chat.ann.run(DECIDE, id=id_, decision="WARN", note="No shoes here")
    (warning,) = await notifications(chat.bob)
    assert warning == {
        "kind": "WARNING",
        "reportDecision": None,
        "warning": "No shoes here",
        "actor": None,
        "message": None,
        "post": None,
    }
    await chat.bob.join(chat.community)
    assert (await notifications(chat.bob))[0]["message"] == {"id": message}


async def test_ban_removes_the_author_from_the_community(chat: ChatScenario, carl: Person) -> None:
    _, id_ = await report_new_message(chat, carl)
    assert await chat.ann.code(DECIDE, id=id_, decision="BAN", banUntil="2001-01-01T00:00:00Z") == "BAD_USER_INPUT"
    await carl.leave(chat.community)
    await chat.ann.run(DECIDE, id=id_, decision="BAN", banUntil="2040-01-01T00:00:00Z")
    await until_outbox_is_empty(carl.stores)
    (decided,) = (await carl.run(OUTCOMES))["notifications"]["items"]
    assert decided == {"reportDecision": "BAN", "reportOutcome": "BAN", "message": None}
    join = "mutation ($id: ID!) { joinCommunity(communityId: $id) { id } }"
    assert await chat.bob.fails(join, id=chat.community) == {"code": "FORBIDDEN", "until": "2040-01-01T00:00:00Z"}


async def test_admin_removes_a_post_and_deactivates_a_person(
    chat: ChatScenario, carl: Person, admin: Person, sign_in: SignIn
) -> None:
    await report(carl, "POST", await chat.bob.create_post("Buy shoes"))
    await report(carl, "USER", "bob")
    post_report, user_report = [each["id"] for each in await queue(admin)]
    await admin.run(DECIDE, id=post_report, decision="REMOVE")
    feed = await chat.ann.run('{ localFeed(latest: "now") { items { text } } }')
    assert feed["localFeed"]["items"] == []
    entries = await admin.stores.audit.list_entries("acme", AuditFilter(action=AuditAction.POST_DELETED), None, 50)
    assert [(each.actor_id, each.target_id) for each in entries] == [("zoe", "bob")]
    assert await admin.code(DECIDE, id=user_report, decision="REMOVE") == "BAD_USER_INPUT"
    await admin.run(DECIDE, id=user_report, decision="BAN")
    users = await admin.run("{ organizationUsers(deactivated: true) { id } }")
    assert users["organizationUsers"] == [{"id": "bob"}]
    assert [each["outcome"] for each in await queue(admin, state="DECIDED")] == ["REMOVE", "DEACTIVATE"]
    await until_outbox_is_empty(carl.stores)
    items = (await carl.run(OUTCOMES))["notifications"]["items"]
    assert [(each["reportDecision"], each["reportOutcome"]) for each in items] == [
        ("BAN", "DEACTIVATE"),
        ("REMOVE", "REMOVE"),
    ]


async def test_nobody_decides_about_oneself_or_a_higher_rank(chat: ChatScenario, carl: Person, admin: Person) -> None:
    await chat.ann.run(SET_ROLE, id=chat.community, user="carl", role="MODERATOR")
    _, report_of_owner = await report_new_message(chat, chat.bob, author=chat.ann)
    assert await chat.ann.code(DECIDE, id=report_of_owner, decision="DISMISS") == "NOT_FOUND"
    for decision in ("REMOVE", "WARN", "BAN"):
        assert await carl.code(DECIDE, id=report_of_owner, decision=decision) == "FORBIDDEN"
    assert await carl.code(DECIDE, id=report_of_owner, decision="DISMISS") is None


async def test_former_moderator_receives_no_more_events(chat: ChatScenario, carl: Person) -> None:
    await chat.ann.run(SET_ROLE, id=chat.community, user="carl", role="MODERATOR")
    async with carl.subscribed(EVENTS, community=chat.community) as events:
        message = await chat.bob.post(chat.topic, "first")
        await report(chat.ann, "MESSAGE", message["id"])
        assert (await events.next_event())["type"] == "ContentReported"
        await chat.ann.run(SET_ROLE, id=chat.community, user="carl", role="MEMBER")
        message = await chat.bob.post(chat.topic, "second")
        await report(chat.ann, "MESSAGE", message["id"])
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(events.next_event(), 1)


async def test_admin_sees_no_report_of_a_private_community(chat: ChatScenario, carl: Person, admin: Person) -> None:
    _, id_ = await report_new_message(chat, carl)
    update = "mutation ($id: ID!) { updateCommunity(id: $id, visibility: PRIVATE) { id } }"
    async with admin.subscribed(EVENTS) as events:
        await chat.ann.run(update, id=chat.community)
        assert await queue(admin) == []
        assert await admin.code(QUEUE, community=chat.community) == "NOT_FOUND"
        assert await admin.code(QUEUE, after=id_) == "NOT_FOUND"
        await report_new_message(chat, carl)
        await report(carl, "USER", "bob")
        assert [each["id"] for each in await queue(admin)] == [(await events.next_event())["report"]["id"]]


async def test_admins_decide_about_the_only_owner(chat: ChatScenario, carl: Person, admin: Person) -> None:
    update = "mutation ($id: ID!) { updateCommunity(id: $id, visibility: PRIVATE) { id } }"
    await chat.ann.run(update, id=chat.community)
    messages = [(await chat.ann.post(chat.topic, text))["id"] for text in ("Buy shoes", "Buy hats", "Buy ties")]
    for id_ in messages[:2]:
        await report(carl, "MESSAGE", id_)
    first, second = await queue(admin)
    assert [(each["subjectId"], each["messagesBefore"]) for each in (first, second)] == [
        (each["id"], None) for each in (first, second)
    ]
    assert [each["contentText"] for each in (first, second)] == ["Buy shoes", "Buy hats"]
    assert await admin.code(QUEUE, community=chat.community) == "NOT_FOUND"
    assert await queue(chat.ann, chat.community) == []
    assert await admin.code(DECIDE, id=first["id"], decision="BAN", banUntil="2030-01-01T00:00:00Z") == "BAD_USER_INPUT"
    await admin.run(DECIDE, id=first["id"], decision="REMOVE")
    texts = 'query ($topic: ID!) { messages(topicId: $topic, latest: "now") { items { text } } }'
    assert (await carl.run(texts, topic=chat.topic))["messages"]["items"][-1] == {"text": ""}
    await chat.ann.run(SET_ROLE, id=chat.community, user="carl", role="OWNER")
    await report(chat.bob, "MESSAGE", messages[2])
    assert [each["id"] for each in await queue(admin)] == [first["id"], second["id"]]
    await admin.run(DECIDE, id=second["id"], decision="BAN")
    assert (await admin.run("{ organizationUsers(deactivated: true) { id } }"))["organizationUsers"] == [{"id": "ann"}]


async def test_reported_moderator_does_not_see_the_report(chat: ChatScenario, carl: Person, admin: Person) -> None:
    await chat.ann.run(SET_ROLE, id=chat.community, user="carl", role="MODERATOR")
    async with carl.subscribed(EVENTS, community=chat.community) as events:
        _, about_carl = await report_new_message(chat, chat.bob, author=carl)
        assert await queue(carl, chat.community) == []
        for query, variables in ((ONE, {}), (DECIDE, {"decision": "DISMISS"})):
            assert await carl.code(query, id=about_carl, **variables) == "NOT_FOUND"
        assert await carl.code(QUEUE, community=chat.community, after=about_carl) == "NOT_FOUND"
        _, about_bob = await report_new_message(chat, chat.ann)
        assert (await events.next_event())["report"]["id"] == about_bob
    assert [each["id"] for each in await queue(carl, chat.community)] == [about_bob]
    assert [each["id"] for each in await queue(chat.ann, chat.community)] == [about_carl, about_bob]
    await report(carl, "USER", "zoe")
    assert about_bob in [each["id"] for each in await queue(admin)]
    assert "zoe" not in [each["author"]["id"] for each in await queue(admin)]


async def test_admins_decide_where_no_other_moderator_can_act(chat: ChatScenario, carl: Person, admin: Person) -> None:
    """Nobody but the reported moderator is active in the private community."""
    await chat.ann.run(SET_ROLE, id=chat.community, user="carl", role="MODERATOR")
    await chat.ann.run(HIDE, id=chat.community)
    await report_new_message(chat, chat.bob, author=carl)
    assert await queue(admin) == []
    await admin.run(DEACTIVATE, id="ann")
    _, id_ = await report_new_message(chat, chat.bob, author=carl)
    (found,) = await queue(admin)
    assert (found["id"], found["subjectId"], found["community"]) == (id_, id_, None)
    assert await admin.code(DECIDE, id=id_, decision="REMOVE") is None


async def test_queue_follows_the_visibility_of_communities(chat: ChatScenario, carl: Person, admin: Person) -> None:
    _, first = await report_new_message(chat, carl)
    for visibility, visible in (("PRIVATE", []), ("LISTED", [first]), ("PRIVATE", []), ("PUBLIC", [first])):
        await chat.ann.run(HIDE, id=chat.community, visibility=visibility)
        assert set(visible) >= {each["id"] for each in await queue(admin)}
        await until_outbox_is_empty(chat.ann.stores)
        assert [each["id"] for each in await queue(admin)] == visible
    await chat.ann.run(HIDE, id=chat.community)
    _, second = await report_new_message(chat, carl)
    await until_outbox_is_empty(chat.ann.stores)
    assert await queue(admin) == []
    await chat.ann.run('mutation ($c: ID!) { addMember(communityId: $c, userId: "zoe") { role } }', c=chat.community)
    assert [each["id"] for each in await queue(admin)] == [first, second]


async def test_queue_reads_no_report_of_private_communities(chat: ChatScenario, carl: Person, admin: Person) -> None:
    stores, shown = chat.ann.stores, []
    for number in range(12):
        community = await chat.bob.create_community(f"Hut {number}", visibility="PRIVATE")
        topic = await chat.bob.create_topic(community)
        await chat.bob.run('mutation ($c: ID!) { addMember(communityId: $c, userId: "carl") { role } }', c=community)
        await report(chat.bob, "MESSAGE", (await carl.post(topic, "Buy hats"))["id"])
    shown.append((await report_new_message(chat, carl))[1])
    for state in (None, "OPEN"):
        assert [each["id"] for each in await queue(admin, state=state)] == shown
        query = {"org": "acme", "private": None, **({} if state is None else {"state": state})}
        plan = await stores.mongo.database.command(
            "explain",
            {"find": "content_reports", "filter": query, "sort": {"at": 1, "_id": 1}, "limit": 50},
            verbosity="executionStats",
        )
        assert plan["executionStats"]["totalKeysExamined"] <= 2


async def test_decision_of_a_dead_process_is_carried_out_later(chat: ChatScenario, carl: Person) -> None:
    _, id_ = await report_new_message(chat, carl)
    decided = await decide_without_effect(chat, id_)
    effects = chat.ann.stores.report_effects
    assert await effects.sweep(10) == 0
    await make_due(chat, id_)
    assert sorted(await asyncio.gather(*(effects.sweep(10) for _ in range(3)))) == [0, 0, 1]
    assert await chat.ann.texts(chat.topic) == [""]
    await effects.carry_out(decided)
    assert await effects.sweep(10) == 0


async def test_lost_right_of_the_moderator_is_stored_as_failure(chat: ChatScenario, carl: Person) -> None:
    await chat.ann.run(SET_ROLE, id=chat.community, user="carl", role="MODERATOR")
    _, id_ = await report_new_message(chat, chat.ann)
    await decide_without_effect(chat, id_, Moderator("carl"), ContentReportDecision.BAN)
    await chat.ann.run(SET_ROLE, id=chat.community, user="carl", role="MEMBER")
    await make_due(chat, id_)
    assert await chat.ann.stores.report_effects.sweep(10) == 1
    (found,) = await queue(chat.ann, chat.community)
    assert "Only moderators" in found["failure"]
    assert await chat.bob.texts(chat.topic) == ["Buy shoes"]


async def test_delayed_ban_is_carried_out_by_a_worker(
    chat: ChatScenario, carl: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, id_ = await report_new_message(chat, carl)
    with monkeypatch.context() as patch:
        # No mark on a person lasts a day, so the ban is refused as UNAVAILABLE.
        patch.setattr(moderation_changes, "MIN_MARK_LEFT", timedelta(days=1))
        decided = await chat.ann.do(DECIDE, id=id_, decision="BAN")
        assert (decided["state"], decided["failure"]) == ("DECIDED", None)
    await make_due(chat, id_)
    assert await chat.ann.stores.report_effects.sweep(10) == 1
    assert await chat.bob.code(PAGE, topic=chat.topic, latest="now") == "FORBIDDEN"


async def decide_without_effect(
    chat: ChatScenario,
    id_: str,
    moderator: Moderator = ANN,
    decision: ContentReportDecision = ContentReportDecision.REMOVE,
) -> ContentReport:
    """Commits a decision as a process that dies before it carries out the decision."""
    reports = chat.ann.stores.content_reports
    return await reports.decide(await reports.get("acme", id_), moderator, ReportRuling(decision, "x", None))


async def make_due(chat: ChatScenario, id_: str) -> None:
    """Ends the time that the process has to carry out the decision."""
    earlier = [{"$set": {"effect_due": {"$subtract": ["$$NOW", 1000]}}}]
    await chat.ann.stores.mongo[changes.CONTENT_REPORTS].update_one({"_id": id_}, earlier)


async def test_open_reports_are_limited(
    chat: ChatScenario, carl: Person, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MAX_OPEN_BY_REPORTER", 3)
    monkeypatch.setattr(changes, "MAX_OPEN_OF_SUBJECT", 2)
    messages = [await chat.bob.post(chat.topic, f"{n}") for n in range(5)]
    answers = await asyncio.gather(*(carl.code(REPORT, subject="MESSAGE", id=message["id"]) for message in messages))
    assert sorted(str(each) for each in answers) == ["None"] * 3 + ["RATE_LIMITED"] * 2
    people = [await sign_in(f"p{n}") for n in range(4)]
    codes = await asyncio.gather(*(person.code(REPORT, subject="USER", id="bob") for person in people))
    assert sorted(str(each) for each in codes) == ["CONFLICT"] * 2 + ["None"] * 2
    assert len(await chat.ann.stores.content_reports.list_reports("acme", ReportFilter(), None, 50)) == 5


async def test_report_expires_after_the_decision(chat: ChatScenario, carl: Person) -> None:
    _, id_ = await report_new_message(chat, carl)
    reports = chat.ann.stores.mongo[changes.CONTENT_REPORTS]
    document = await reports.find_one({"_id": id_})
    assert document is not None
    assert document["expires_at"] - document["at"] == changes.OPEN_REPORT_LIFETIME
    await chat.ann.run(DECIDE, id=id_, decision="WARN")
    document = await reports.find_one({"_id": id_})
    assert document is not None
    assert document["expires_at"] - document["decided_at"] == changes.DECIDED_REPORT_LIFETIME
    await reports.delete_one({"_id": id_})
    assert [(each["kind"], each["reportDecision"]) for each in await notifications(carl)] == [("REPORT_DECIDED", None)]
    assert [(each["kind"], each["warning"]) for each in await notifications(chat.bob)] == [("WARNING", None)]
