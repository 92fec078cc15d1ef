"""OAuth of Instagram: a code, a token of an hour, and tokens of 60 days that renew themselves."""

from collections.abc import AsyncIterator

import pytest

from jobs.providers.social.http import HttpClient
from jobs.providers.social.instagram import Instagram
from jobs.providers.social.network import PublishingAccount, PublishingRefused, RetryableFailure
from jobs.providers.social.oauth.authorization import OAuthApp
from jobs.providers.social.oauth.instagram import SCOPES, InstagramOAuth
from tests.jobs.providers.social.oauth.authorized import REDIRECT_URI, allowed
from tests.twins.instagram import InstagramTwin
from tests.twins.twin import NetworkFault, running_twin

pytestmark = pytest.mark.anyio

SIXTY_DAYS_S = 5_184_000.0


@pytest.fixture(params=[True, False], ids=["list", "object"])
async def twin(request: pytest.FixtureRequest) -> AsyncIterator[InstagramTwin]:
    async with running_twin(InstagramTwin()) as twin:
        assert isinstance(twin, InstagramTwin)
        twin.lists_user = request.param
        twin.add_app(REDIRECT_URI, ",".join(SCOPES))
        yield twin


@pytest.fixture
def oauth(http: HttpClient, twin: InstagramTwin) -> InstagramOAuth:
    return InstagramOAuth(http, OAuthApp(twin.client_id, twin.client_secret), twin.url, twin.url)


async def test_code_becomes_credentials_of_sixty_days(
    http: HttpClient, oauth: InstagramOAuth, twin: InstagramTwin
) -> None:
    authorization, code = await allowed(oauth, twin.authorization)
    grant = await oauth.exchange(None, authorization, code)
    assert grant.secret == f"{twin.user}:{twin.token}"
    lifetime = grant.lifetime
    assert (lifetime.expires_in_s, lifetime.refresh_token, lifetime.is_renewable) == (SIXTY_DAYS_S, None, True)
    assert (await Instagram(http).verify(PublishingAccount("", twin.url, grant.secret))).id == twin.user
    with pytest.raises(PublishingRefused, match="This authorization code has been used"):
        await oauth.exchange(None, authorization, code)


async def test_deselected_permission_is_refused(oauth: InstagramOAuth, twin: InstagramTwin) -> None:
    twin.permissions = SCOPES[0]
    authorization, code = await allowed(oauth, twin.authorization)
    with pytest.raises(PublishingRefused, match="permissions instagram_business_content_publish were not granted"):
        await oauth.exchange(None, authorization, code)


async def test_renewal_may_be_repeated(oauth: InstagramOAuth, twin: InstagramTwin) -> None:
    first = await oauth.renew(None, "1784:token", None)
    second = await oauth.renew(None, "1784:token", None)
    assert first.secret != second.secret == f"1784:{twin.token}"
    assert second.lifetime.expires_in_s == SIXTY_DAYS_S


async def test_expired_token_is_not_renewed(oauth: InstagramOAuth) -> None:
    with pytest.raises(PublishingRefused, match="Session has expired"):
        await oauth.renew(None, "1784:other", None)


@pytest.mark.parametrize("fault", [NetworkFault.BUSY, NetworkFault.FAIL_AFTER, NetworkFault.CUT_AFTER])
async def test_failed_renewal_is_repeated(oauth: InstagramOAuth, twin: InstagramTwin, fault: NetworkFault) -> None:
    twin.renewal_faults.append(fault)
    with pytest.raises(RetryableFailure):
        await oauth.renew(None, "1784:token", None)
    assert (await oauth.renew(None, "1784:token", None)).secret == f"1784:{twin.token}"
