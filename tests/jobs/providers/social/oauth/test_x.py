"""OAuth of X: tokens of two hours, and refresh tokens that are used once."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from jobs.providers.social.http import HttpClient
from jobs.providers.social.network import OutcomeUncertain, PublishingAccount, PublishingRefused, RetryableFailure
from jobs.providers.social.oauth.authorization import OAuthApp
from jobs.providers.social.oauth.x import SCOPES, XOAuth
from jobs.providers.social.x import X
from tests.jobs.providers.social.oauth.authorized import REDIRECT_URI, allowed
from tests.twins.twin import NetworkFault, running_twin
from tests.twins.x import XTwin

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["x-secret", None], ids=["confidential", "public"])
async def twin(request: pytest.FixtureRequest) -> AsyncIterator[XTwin]:
    async with running_twin(XTwin()) as twin:
        assert isinstance(twin, XTwin)
        twin.client_secret = request.param
        twin.add_app(REDIRECT_URI, " ".join(SCOPES))
        yield twin


@pytest.fixture
def oauth(http: HttpClient, twin: XTwin) -> XOAuth:
    return XOAuth(http, OAuthApp(twin.client_id, twin.client_secret), twin.url)


async def test_code_becomes_a_token_with_an_end(http: HttpClient, oauth: XOAuth, twin: XTwin) -> None:
    authorization, code = await allowed(oauth, twin.authorization)
    grant = await oauth.exchange(None, authorization, code)
    lifetime = grant.lifetime
    assert (lifetime.expires_in_s, lifetime.refresh_token, lifetime.is_renewable) == (7200.0, twin.refresh_token, True)
    assert (await X(http).verify(PublishingAccount("", twin.url, grant.secret))).id == twin.user_id


async def test_code_with_another_verifier_is_refused(oauth: XOAuth, twin: XTwin) -> None:
    authorization, code = await allowed(oauth, twin.authorization)
    with pytest.raises(PublishingRefused, match="Value passed for the authorization code was invalid"):
        await oauth.exchange(None, replace(authorization, verifier="w" * 43), code)


async def test_missing_scope_is_refused(oauth: XOAuth, twin: XTwin) -> None:
    twin.permissions = "tweet.read users.read media.write offline.access"
    authorization, code = await allowed(oauth, twin.authorization)
    with pytest.raises(PublishingRefused, match=r"permissions tweet\.write were not granted"):
        await oauth.exchange(None, authorization, code)


async def test_refresh_token_renews_once(oauth: XOAuth, twin: XTwin) -> None:
    first = await oauth.renew(None, "access", "refresh-0")
    assert (first.secret, first.lifetime.refresh_token) == (twin.token, twin.refresh_token)
    with pytest.raises(PublishingRefused, match="Value passed for the token was invalid"):
        await oauth.renew(None, "access", "refresh-0")
    second = await oauth.renew(None, first.secret, first.lifetime.refresh_token)
    assert second.secret not in ("access", first.secret)


async def test_missing_refresh_token_asks_nobody(oauth: XOAuth, twin: XTwin) -> None:
    with pytest.raises(ValueError, match="no refresh token"):
        await oauth.renew(None, "access", None)
    assert twin.request_counts.total() == 0


@pytest.mark.parametrize(
    ("fault", "failure"),
    [
        (NetworkFault.BUSY, RetryableFailure),
        (NetworkFault.FAIL_AFTER, OutcomeUncertain),
        (NetworkFault.CUT_AFTER, OutcomeUncertain),
    ],
)
async def test_failed_renewal_says_what_is_known(
    oauth: XOAuth, twin: XTwin, fault: NetworkFault, failure: type[Exception]
) -> None:
    twin.renewal_faults.append(fault)
    with pytest.raises(failure):
        await oauth.renew(None, "access", "refresh-0")


async def test_wrong_secret_of_the_app_is_no_refusal_of_the_grant(http: HttpClient, twin: XTwin) -> None:
    wrong = XOAuth(http, OAuthApp(twin.client_id, "wrong"), twin.url)
    with pytest.raises(RetryableFailure, match="refuses the app: Missing valid authorization header"):
        await wrong.renew(None, "access", "refresh-0")
    assert twin.refresh_token == "refresh-0"
