"""OAuth of Mastodon: an app for each connection, codes bound to a verifier, and tokens without an end."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from jobs.providers.social.http import HttpClient
from jobs.providers.social.mastodon import Mastodon
from jobs.providers.social.network import OutcomeUncertain, PublishingAccount, PublishingRefused, RetryableFailure
from jobs.providers.social.oauth.authorization import OAuthApp
from jobs.providers.social.oauth.mastodon import MastodonOAuth
from storage.publishing.credentials.lifetimes import UNKNOWN_LIFETIME
from tests.jobs.providers.social.oauth.authorized import REDIRECT_URI, allowed
from tests.twins.mastodon import MastodonTwin
from tests.twins.twin import running_twin

pytestmark = pytest.mark.anyio


@pytest.fixture
async def twin() -> AsyncIterator[MastodonTwin]:
    async with running_twin(MastodonTwin()) as twin:
        assert isinstance(twin, MastodonTwin)
        yield twin


@pytest.fixture
def oauth(http: HttpClient) -> MastodonOAuth:
    return MastodonOAuth(http)


async def test_code_becomes_a_token_that_is_accepted(
    http: HttpClient, oauth: MastodonOAuth, twin: MastodonTwin
) -> None:
    authorization, code = await allowed(oauth, twin.authorization, twin.url)
    grant = await oauth.exchange(twin.url, authorization, code)
    assert grant.lifetime == UNKNOWN_LIFETIME
    owner = await Mastodon(http).verify(PublishingAccount("", twin.url, grant.secret))
    assert owner.id == twin.user_id


async def test_wrong_code_verifier_or_address_is_refused(oauth: MastodonOAuth, twin: MastodonTwin) -> None:
    for change in ({"verifier": "w" * 43}, {"redirect_uri": "https://evil.example/"}):
        authorization, code = await allowed(oauth, twin.authorization, twin.url)
        with pytest.raises(PublishingRefused, match="authorization grant is invalid"):
            await oauth.exchange(twin.url, replace(authorization, **change), code)
    authorization, code = await allowed(oauth, twin.authorization, twin.url)
    await oauth.exchange(twin.url, authorization, code)
    with pytest.raises(PublishingRefused):
        await oauth.exchange(twin.url, authorization, code)


async def test_missing_scope_is_refused(oauth: MastodonOAuth, twin: MastodonTwin) -> None:
    twin.permissions = "read:accounts write:media"
    authorization, code = await allowed(oauth, twin.authorization, twin.url)
    with pytest.raises(PublishingRefused, match="permissions write:statuses were not granted"):
        await oauth.exchange(twin.url, authorization, code)


async def test_app_of_another_server_is_refused(oauth: MastodonOAuth, twin: MastodonTwin) -> None:
    authorization, code = await allowed(oauth, twin.authorization, twin.url)
    with pytest.raises(RetryableFailure, match="refuses the app"):
        await oauth.exchange(twin.url, replace(authorization, app=OAuthApp("id-0", "secret")), code)


async def test_server_that_registers_no_app_is_refused(oauth: MastodonOAuth, twin: MastodonTwin) -> None:
    twin.registers_apps = False
    with pytest.raises(PublishingRefused, match="Validation failed"):
        await oauth.app(twin.url, REDIRECT_URI)


async def test_private_or_missing_server_is_no_mastodon(oauth: MastodonOAuth) -> None:
    with pytest.raises((PublishingRefused, RetryableFailure, OutcomeUncertain)):
        await oauth.app("http://127.0.0.1:1", REDIRECT_URI)
    with pytest.raises(PublishingRefused, match="not a public address"):
        await oauth.app("http://10.0.0.1", REDIRECT_URI)
