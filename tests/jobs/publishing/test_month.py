"""A month of publishing by two workers to all targets, while tokens end, a network is down, and clocks change.

`pytest -s` prints what became of the publications.
"""

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from jobs.providers.egress import Egress
from jobs.providers.mailer import Mailer
from jobs.providers.social.verification import AccountVerifier
from jobs.publishing.publisher import PostPublisher
from storage.identity.roles import Role
from storage.publishing.accounts import AccountToConnect
from storage.publishing.credentials.lifetimes import UNKNOWN_LIFETIME, CredentialLifetime
from storage.publishing.networks import Network
from storage.publishing.records import AccountTarget, ConnectedAccount, PublicationState
from storage.stores import Stores
from tests.jobs.contexts import job_context
from tests.jobs.publishing.played_month import (
    PlayedMonth,
    PlayedPublication,
    StoppableTwin,
    copy_key,
    first_day,
    posting_moments,
)
from tests.jobs.publishing.runs import SECRETS, TWINS, quick_networks, renewer
from tests.storage.publishing.scenario import IMAGE, PublishingScenario, account_target
from tests.twins.instagram import InstagramTwin
from tests.twins.mastodon import MastodonTwin
from tests.twins.twin import NetworkFault
from tests.twins.x import XTwin

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

HELD = "PUBLICATION_NEEDS_ATTENTION"
MARKED_NETWORKS = (Network.X, Network.MASTODON)
"""Networks that refuse the credentials of their account once in the month."""

DAY_S = 86_400.0
X_TOKEN_S, INSTAGRAM_TOKEN_S = 7 * DAY_S, 10 * DAY_S
ON_TIME_S = 60.0
"""Publications that are later than this were held or tried again: a loaded machine is not so slow."""


@dataclass
class Team:
    """A month in which a team publishes to four networks."""

    month: PlayedMonth
    x: XTwin
    instagram: InstagramTwin
    mastodon: MastodonTwin
    bluesky: StoppableTwin
    accounts: dict[Network, ConnectedAccount]

    async def lose_next_answer_of_x(self) -> None:
        """X renews the token, and its answer is lost. X answers a refresh token once."""
        self.x.renewal_faults.append(NetworkFault.CUT_AFTER)

    async def lose_next_answer_of_instagram(self) -> None:
        """Instagram renews the token, and its answer is lost. It answers the next call, too."""
        self.instagram.renewal_faults.append(NetworkFault.CUT_AFTER)

    async def connect_x_again(self) -> None:
        lifetime = CredentialLifetime(X_TOKEN_S, self.x.refresh_token, is_renewable=True)
        await self.month.replace(self.accounts[Network.X], self.x.token, lifetime)

    async def revoke_mastodon(self) -> None:
        self.mastodon.token = "a token of nobody"

    async def connect_mastodon_again(self) -> None:
        self.mastodon.token = "another token"
        await self.month.replace(self.accounts[Network.MASTODON], self.mastodon.token)

    async def copies(self) -> Counter[str]:
        """Returns how often each target shows each post."""
        twins = {
            Network.X: self.x,
            Network.INSTAGRAM: self.instagram,
            Network.MASTODON: self.mastodon,
            Network.BLUESKY: self.bluesky.twin,
        }
        scenario, copies = self.month.scenario, Counter[str]()
        for network, twin in twins.items():
            copies.update(copy_key(account_target(self.accounts[network]), post.text) for post in twin.ledger)
        copies.update(copy_key(scenario.topic, each["text"]) for each in await scenario.messages())
        posts = await scenario.stores.mongo.find("posts", {"_id.o": scenario.organization_id})
        copies.update(copy_key(scenario.home, each["text"]) for each in posts)
        return copies


@pytest.fixture
async def team(
    shared_stores: Stores, scenario: PublishingScenario, egress: Egress, tmp_path: Path
) -> AsyncIterator[Team]:
    x, instagram, mastodon, bluesky = (StoppableTwin(TWINS[each]()) for each in NETWORKS)
    for twin in (x, instagram, mastodon, bluesky):
        await twin.start()
    assert isinstance(x.twin, XTwin)
    assert isinstance(instagram.twin, InstagramTwin)
    assert isinstance(mastodon.twin, MastodonTwin)
    x.twin.lifetime_s, instagram.twin.lifetime_s, instagram.twin.quota = int(X_TOKEN_S), int(INSTAGRAM_TOKEN_S), 1000
    publishers = [PostPublisher(shared_stores, quick_networks(shared_stores, egress)) for _ in range(2)]
    renewers = {
        Network.X: renewer(Network.X, egress, x.twin.url),
        Network.INSTAGRAM: renewer(Network.INSTAGRAM, egress, instagram.twin.url),
    }
    mailer = Mailer(None, "noroshi@example.org", tmp_path)
    verifier = AccountVerifier(quick_networks(shared_stores, egress))
    workers = [
        replace(
            job_context(shared_stores, egress, publisher=publisher, mailer=mailer),
            credential_renewers=renewers,
            account_verifier=verifier,
        )
        for publisher in publishers
    ]
    month = PlayedMonth(scenario, workers, publishers, first_day(await scenario.now()))
    twins = dict(zip(NETWORKS, (x, instagram, mastodon, bluesky), strict=True))
    await shared_stores.users.sign_in(scenario.organization_id, "bob", [Role.OPERATOR], "Bob", None)
    accounts = {each: await connect(scenario, verifier, each, twins[each].twin.url) for each in NETWORKS}
    yield Team(month, x.twin, instagram.twin, mastodon.twin, bluesky, accounts)
    for publisher in publishers:
        await publisher.close()
    for twin in (x, instagram, mastodon, bluesky):
        await twin.stop()


NETWORKS = (Network.X, Network.INSTAGRAM, Network.MASTODON, Network.BLUESKY)
LIFETIMES = {
    Network.X: CredentialLifetime(X_TOKEN_S, "refresh-0", is_renewable=True),
    Network.INSTAGRAM: CredentialLifetime(INSTAGRAM_TOKEN_S, is_renewable=True),
}


async def connect(
    scenario: PublishingScenario, verifier: AccountVerifier, network: Network, url: str
) -> ConnectedAccount:
    owner, lifetime = await verifier.verify(network, url, SECRETS[network]), LIFETIMES.get(network, UNKNOWN_LIFETIME)
    new = AccountToConnect(scenario.organization_id, network, "Harbour", url, scenario.ann.id, owner, lifetime)
    return await scenario.stores.accounts.connect(new, SECRETS[network], None)


async def test_month_loses_and_repeats_nothing(team: Team) -> None:
    month, scenario = team.month, team.month.scenario
    texts = [account_target(team.accounts[each]) for each in NETWORKS if each is not Network.INSTAGRAM]
    for due_at, zone in posting_moments(month.begin):
        await month.schedule(due_at, zone, *texts, scenario.topic, scenario.home)
        await month.schedule(due_at, zone, account_target(team.accounts[Network.INSTAGRAM]), media=(IMAGE,))
    month.at(4, team.lose_next_answer_of_instagram)
    month.at(12.25, team.revoke_mastodon)
    month.at(13, team.lose_next_answer_of_x)
    month.at(13.5, team.connect_mastodon_again)
    month.at(14, team.lose_next_answer_of_instagram)
    month.at(15.5, team.connect_x_again)
    month.at(18, team.bluesky.stop)
    month.at(19, team.bluesky.start)
    steps = await month.play()
    outcomes, notified = await month.outcomes(await team.copies()), await month.notification_counts()
    print_table(outcomes, notified, steps, month.mails)

    assert len(outcomes) == 58 * 6
    for each in outcomes:
        check(each)
    await check_messages(team, outcomes, notified)
    check_tokens(team)
    check_troubles(outcomes)


def check(each: PlayedPublication) -> None:
    """Checks that a publication was published once and not early, or failed for a reason without a copy."""
    state, error = each.publication.state, each.publication.error
    if each.published_at is None:
        assert state is PublicationState.FAILED, each
        assert error is not None
        assert each.copies == 0, each
    else:
        assert (state, each.copies) == (PublicationState.PUBLISHED, 1), each
        assert each.published_at >= each.due_at, each
        assert each.was_held or lateness_s(each) < ON_TIME_S, each


async def check_messages(
    team: Team, outcomes: list[PlayedPublication], notified: Counter[tuple[str, str, str]]
) -> None:
    """Checks that the author and the other OPERATOR know of each trouble, and that nobody was notified twice."""
    month, scenario = team.month, team.month.scenario
    assert {key: count for key, count in notified.items() if count > 1} == {}, "a repeated notification"
    failed = {each.publication.id for each in outcomes if each.published_at is None}
    held = {each.publication.id for each in outcomes if each.was_held}
    ann, bob = (kinds_and_ids(notified, user) for user in (scenario.ann.id, "bob"))
    troubles = {("PUBLICATION_FAILED", id_) for id_ in failed} | {(HELD, id_) for id_ in held}
    assert ann == troubles | {("ACCOUNT_NEEDS_ATTENTION", team.accounts[Network.X].id)} | mastodon_marks(team, ann)
    # The team is notified of the first of the publications that wait for one account.
    assert {each for each in bob if each[0] != HELD} == {("PUBLICATION_FAILED", id_) for id_ in failed}
    assert len([each for each in bob if each[0] == HELD]) == len(MARKED_NETWORKS)
    assert bob <= troubles
    reports = [ref.split("/")[:2] for kind, ref in await scenario.events() if kind == "PublicationReported"]
    assert sorted(reports) == sorted([id_, kind.removeprefix("PUBLICATION_")] for kind, id_ in troubles)
    # So it is with mails to the author.
    assert month.mails == len(failed) + len(MARKED_NETWORKS)


def kinds_and_ids(notified: Counter[tuple[str, str, str]], user: str) -> set[tuple[str, str]]:
    """Returns the kind of each notification of a person, and the id of what it is about."""
    return {(kind, id_) for user_id, kind, id_ in notified if user_id == user}


def mastodon_marks(team: Team, notified: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Returns the notification that Mastodon refused its token, if a verification found it out before a publication."""
    return notified & {("ACCOUNT_NEEDS_ATTENTION", team.accounts[Network.MASTODON].id)}


def check_tokens(team: Team) -> None:
    """Checks that tokens ended four times, and that two renewals of Instagram were answered twice."""
    counts_x, counts_instagram = team.x.request_counts, team.instagram.request_counts
    # One of the calls came after the lost answer, and X refused its refresh token.
    assert counts_x["POST /2/oauth2/token"] == 4 + 1
    renewals = int(32 * DAY_S / (INSTAGRAM_TOKEN_S / 2))
    assert counts_instagram["GET /refresh_access_token"] == renewals + 2


def check_troubles(outcomes: list[PlayedPublication]) -> None:
    """Checks that publications failed only where the month had no way to publish them."""
    reasons = Counter(
        (each.publication.target.network, each.publication.error.code)
        for each in outcomes
        if isinstance(each.publication.target, AccountTarget) and each.publication.error is not None
    )
    assert reasons == {
        (Network.X, "UNAUTHORIZED"): 1,
        (Network.MASTODON, "UNAUTHORIZED"): 1,
        (Network.BLUESKY, "UNREACHABLE"): 2,
    }


def lateness_s(each: PlayedPublication) -> float:
    """Returns how late a publication was published."""
    assert each.published_at is not None
    return (each.published_at - each.due_at).total_seconds()


def print_table(
    outcomes: list[PlayedPublication], notified: Counter[tuple[str, str, str]], steps: int, mails: int
) -> None:
    """Prints the outcomes by target."""
    print(f"\n{steps} steps, {sum(notified.values())} notifications, {mails} mails")
    print("| target | publications | on time | held, then published | failed, with the reason | latest on time |")
    print("| --- | --- | --- | --- | --- | --- |")
    names = {id(each): target_name(each) for each in outcomes}
    for name in sorted(set(names.values())):
        of_target = [each for each in outcomes if names[id(each)] == name]
        published = [each for each in of_target if each.published_at is not None]
        on_time = [each for each in published if not each.was_held]
        errors = Counter(each.publication.error.code for each in of_target if each.publication.error is not None)
        reasons = ", ".join(f"{count} {code}" for code, count in sorted(errors.items())) or "0"
        latest = max(map(lateness_s, on_time), default=0.0)
        held = len(published) - len(on_time)
        print(f"| {name} | {len(of_target)} | {len(on_time)} | {held} | {reasons} | {latest:.1f} s |")


def target_name(each: PlayedPublication) -> str:
    """Returns the network, or the kind of an internal target."""
    target = each.publication.target
    return target.network.value if isinstance(target, AccountTarget) else type(target).__name__
