"""A pending sign-in is opened by its own cookie only, for ten minutes."""

import base64
import time

import orjson
import pytest
from cryptography.fernet import Fernet

from server.auth.oidc.failures import SignInFailed
from server.auth.oidc.pending import PENDING_S, PendingSignIns, local_path

KEY = bytes(range(32))


def test_cookie_opens_its_sign_in() -> None:
    sign_ins = PendingSignIns(KEY)
    pending, cookie = sign_ins.begin("/#/chat")
    assert PendingSignIns(KEY).open(cookie) == pending
    assert pending.verifier not in cookie
    assert sign_ins.begin("/")[0].state != pending.state


def test_old_foreign_and_malformed_cookies_are_refused() -> None:
    content = orjson.dumps(["s", "n", "v", "/"])
    fernet = Fernet(base64.urlsafe_b64encode(KEY))
    fresh, old = (fernet.encrypt_at_time(content, int(time.time()) - age).decode() for age in (PENDING_S - 60, 601))
    assert PendingSignIns(KEY).open(fresh).state == "s"
    foreign = PendingSignIns(bytes(32)).begin("/")[1]
    refused: tuple[str | None, ...] = (old, foreign, "", None, "x", "ü")
    for each in refused:
        with pytest.raises(SignInFailed):
            PendingSignIns(KEY).open(each)


def test_only_local_paths_are_kept() -> None:
    for path in ("/", "/#/topic/1", "/graphiql?a=b"):
        assert local_path(path) == path
    for other in ("//evil.org", "/\\evil.org", "https://evil.org", "evil", "/a b", "/a\nb", "/" + "a" * 1000, None):
        assert local_path(other) == "/"
