"""Settings: defaults, refusals, and the environment of child processes."""

from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

import pytest

from server.settings import Settings, SettingsError

SECRET = "a secret of more than thirty-two bytes"


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings().environment():
        if name.startswith(("NOROSHI_", "MONGODB_URI", "REDIS_URL")):
            monkeypatch.delenv(name, raising=False)


def refusal(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> str:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as refusal:
        Settings.from_environment()
    return str(refusal.value)


def test_defaults_need_no_environment() -> None:
    settings = Settings.from_environment()
    assert (settings.mongodb_uri, settings.redis_url, settings.auth_secret) == (None, None, None)
    assert (settings.database, settings.mongo_driver) == ("noroshi", "pymongo")
    assert (settings.host, settings.port, settings.data_dir) == ("127.0.0.1", 8000, Path(".noroshi"))
    assert settings.base_url == "http://127.0.0.1:8000"


def test_lists_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOROSHI_EGRESS_ALLOW", "10.0.0.0/8, ::1/128,")
    monkeypatch.setenv("NOROSHI_ALLOWED_ORIGINS", "https://Example.org/, http://localhost:5173")
    monkeypatch.setenv("NOROSHI_ALLOWED_HOSTS", "Chat.example.org, *.example.org")
    settings = Settings.from_environment()
    assert settings.allowed_hosts == ("chat.example.org", "*.example.org")
    assert settings.egress_allow == (IPv4Network("10.0.0.0/8"), IPv6Network("::1/128"))
    assert settings.allowed_origins == ("https://example.org", "http://localhost:5173")


def test_option_overrides_variable_unless_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOROSHI_PORT", "9000")
    assert Settings.from_environment(port=9001).port == 9001
    assert Settings.from_environment(port=None).port == 9000


def test_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MONGODB_URI", "")
    assert Settings.from_environment().mongodb_uri is None


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("NOROSHI_PORT", "70000", "a number from 0 to 65535"),
        ("NOROSHI_PORT", "http", "a number from 0 to 65535"),
        ("NOROSHI_ADDRESS_KEYS", "1:short", "number:base64 pairs"),
        ("NOROSHI_ADDRESS_KEYS", "x:YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE=", "number:base64 pairs"),
        ("NOROSHI_LEGACY_SHARE", "101", "a number from 0 to 100"),
        ("NOROSHI_LEGACY_BOOK_URL", "ftp://x.example", "an http or https address"),
        ("NOROSHI_BOUNCE_ALARM_PERCENT", "0", "a number above 0"),
        ("NOROSHI_BOUNCE_REPORT_TO", "nobody", "a mail address, or"),
        ("NOROSHI_SMTP_URL", "http://x.example", "smtp://"),
        ("NOROSHI_EGRESS_ALLOW", "10.0.0.1/8", "address ranges"),
        ("NOROSHI_ALLOWED_ORIGINS", "*", "origins such as"),
        ("NOROSHI_ALLOWED_ORIGINS", "https://example.org/chat", "origins such as"),
        ("NOROSHI_ALLOWED_HOSTS", "https://example.org", "host names such as"),
        ("NOROSHI_ALLOWED_HOSTS", "a.*.example", "host names such as"),
        ("NOROSHI_MONGO_DRIVER", "mongoose", "motor or pymongo"),
        ("NOROSHI_DATABASE", "a b", "letters, digits"),
        ("NOROSHI_DEMO", "perhaps", "true or false"),
        ("NOROSHI_PUBLIC_URL", "example.org", "http or https"),
        ("NOROSHI_PUBLIC_URL", "https://example.org:99999", "http or https"),
        ("NOROSHI_PUBLIC_URL", "https:example.org", "http or https"),
        ("NOROSHI_ALLOWED_ORIGINS", "https://user@example.org", "origins such as"),
        ("NOROSHI_TRUSTED_PROXIES", "10.0.0.1/8", "addresses and networks"),
        ("NOROSHI_TRUSTED_PROXIES", "proxy.example.org", "addresses and networks"),
        ("NOROSHI_TRUSTED_PROXIES", "*", "addresses and networks"),
        ("NOROSHI_TRUSTED_PROXIES", "0.0.0.0/0", "addresses and networks"),
        ("NOROSHI_TRUSTED_PROXIES", "none,10.0.0.1", "addresses and networks"),
        ("NOROSHI_LOG_LEVEL", "loud", "debug, info, warning or error"),
        ("NOROSHI_SENDGRID_KEYS", "AAAA", "ECDSA public keys in base64"),
        ("REDIS_URL", "localhost:6379", "redis://"),
    ],
)
def test_invalid_value_error_names_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, expected: str
) -> None:
    message = refusal(monkeypatch, name, value)
    assert message.startswith(f"{name}: expected ")
    assert expected in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "value"), [("MONGODB_URI", "http://user:hunter2@host"), ("NOROSHI_AUTH_SECRET", "hunter2")]
)
def test_invalid_secret_is_not_repeated(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    assert "hunter2" not in refusal(monkeypatch, name, value)


def test_repr_hides_secrets() -> None:
    settings = Settings.from_environment(auth_secret=SECRET, mongodb_uri="mongodb://user:hunter2@host/")
    assert SECRET not in repr(settings)
    assert "hunter2" not in repr(settings)


def test_environment_reproduces_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOROSHI_AUTH_ISSUER", "https://issuer.example")
    monkeypatch.setenv("redis_url", "redis://overridden/0")
    settings = Settings.from_environment(
        mongodb_uri="mongodb://127.0.0.1:20001/?directConnection=true",
        auth_secret=SECRET,
        egress_allow="10.0.0.0/8,::1/128",
        allowed_origins="https://example.org",
        demo=True,
        log_format="json",
        log_level="warning",
        port=0,
    ).with_values(redis_url="redis://127.0.0.1:20002/0", port=8123)
    environment = settings.environment()
    for name in ("NOROSHI_AUTH_ISSUER", "redis_url"):
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert Settings.from_environment() == settings


@pytest.mark.parametrize(
    ("value", "networks"),
    [
        ("", ("127.0.0.1/32", "::1/128")),
        ("10.0.0.5, fd00::/64", ("10.0.0.5/32", "fd00::/64")),
        ("none", ()),
    ],
)
def test_trusted_proxies_reach_child_processes(
    monkeypatch: pytest.MonkeyPatch, value: str, networks: tuple[str, ...]
) -> None:
    monkeypatch.setenv("NOROSHI_TRUSTED_PROXIES", value)
    for _ in range(2):
        settings = Settings.from_environment()
        assert tuple(str(each) for each in settings.proxy_networks) == networks
        monkeypatch.setenv("NOROSHI_TRUSTED_PROXIES", settings.environment()["NOROSHI_TRUSTED_PROXIES"])


@pytest.mark.parametrize(
    ("url", "origins"),
    [
        (None, ("https://app.example.org",)),
        ("https://Chat.example.org:443/base/", ("https://chat.example.org", "https://app.example.org")),
        ("http://chat.example.org:8443", ("http://chat.example.org:8443", "https://app.example.org")),
        ("http://[2001:DB8::1]:80", ("http://[2001:db8::1]", "https://app.example.org")),
        ("https://app.example.org", ("https://app.example.org",)),
    ],
)
def test_page_origins_have_the_form_that_browsers_send(url: str | None, origins: tuple[str, ...]) -> None:
    settings = Settings.from_environment(public_url=url, allowed_origins="https://APP.example.org:443/")
    assert settings.page_origins == origins


def test_apps_at_networks_need_their_ids_and_secrets() -> None:
    assert Settings.from_environment().oauth_apps == {}
    assert Settings.from_environment(x_client_id="x").oauth_apps == {"X": ("x", None)}
    assert Settings.from_environment(x_client_id="x", x_client_secret="s").oauth_apps == {"X": ("x", "s")}
    assert Settings.from_environment(instagram_client_id="i").oauth_apps == {}
    settings = Settings.from_environment(instagram_client_id="i", instagram_client_secret="s")
    assert settings.oauth_apps == {"INSTAGRAM": ("i", "s")}


def test_settings_are_immutable() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings.from_environment().port = 1
