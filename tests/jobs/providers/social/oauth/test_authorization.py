"""Answers of token endpoints: what the app, the person or the moment has caused."""

import httpx2
import orjson
import pytest

from jobs.providers.social.http import NetworkResponse
from jobs.providers.social.network import OutcomeUncertain, PublishingRefused, RetryableFailure
from jobs.providers.social.oauth.authorization import (
    APP_PAUSE_S,
    Grant,
    OAuthApp,
    positive_seconds,
    reason_of,
    require_grant,
    require_scopes,
    with_parameters,
)
from storage.publishing.credentials.lifetimes import UNKNOWN_LIFETIME


def response(status: int, **body: object) -> NetworkResponse:
    return NetworkResponse(status, httpx2.Headers(), orjson.dumps(body))


def test_refusal_has_the_description_of_the_network() -> None:
    with pytest.raises(PublishingRefused, match=r"^Value passed\.$"):
        require_grant(response(400, error="invalid_request", error_description="Value\n passed."))
    assert reason_of(response(400, error_type="OAuthException", error_message="Used")) == "Used"
    assert reason_of(response(400, error={"message": "Session has expired"})) == "Session has expired"


@pytest.mark.parametrize("error", ["invalid_client", "unauthorized_client"])
def test_refused_app_is_no_refusal_of_the_grant(error: str) -> None:
    with pytest.raises(RetryableFailure) as failure:
        require_grant(response(401, error=error, error_description="Missing valid authorization header"))
    assert failure.value.after_s == APP_PAUSE_S


def test_failing_network_may_have_granted() -> None:
    with pytest.raises(OutcomeUncertain):
        require_grant(response(503, error="temporarily_unavailable"))
    with pytest.raises(RetryableFailure):
        require_grant(response(429))
    assert require_grant(response(200, access_token="a")).text("access_token") == "a"


@pytest.mark.parametrize("granted", ["read write", "read,write,more", ["write", "read"], None, "", {"read": True}])
def test_granted_scopes_are_enough(granted: object) -> None:
    require_scopes(granted, ("read", "write"))


@pytest.mark.parametrize("granted", ["read", ["read"], "write_more,read"])
def test_missing_scope_is_refused_by_name(granted: object) -> None:
    with pytest.raises(PublishingRefused, match="permissions write were not granted"):
        require_scopes(granted, ("read", "write"))


@pytest.mark.parametrize("seconds", [0, -1, 10**10, "soon", None, 1.5])
def test_impossible_lifetime_is_refused(seconds: object) -> None:
    with pytest.raises(ValueError):
        positive_seconds(response(200, expires_in=seconds), "expires_in")
    assert positive_seconds(response(200, expires_in=7200), "expires_in") == 7200.0


def test_spaces_of_parameters_become_percent_signs() -> None:
    assert with_parameters("https://a.example/b", {"scope": "a b", "uri": "c:d"}) == (
        "https://a.example/b?scope=a%20b&uri=c%3Ad"
    )


def test_secrets_are_not_shown() -> None:
    assert "hush" not in repr((OAuthApp("id", "hush"), Grant("hush", UNKNOWN_LIFETIME)))
