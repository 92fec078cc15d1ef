"""The certified OpenID provider `oidc-provider` from npm, and a browser that signs in there without Chromium."""

import html
import json
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx2
import pytest

from tests.programs import WEB_CLIENT, require_node_and_web_client
from tests.serving import WebProcess, web_process

CLIENT_ID = "noroshi"
CLIENT_SECRET = "a secret of the tests / with + signs"
ADMIN = "noroshi-admin"
ACCOUNTS: dict[str, dict[str, Any]] = {
    "ann": {"name": "Ann Lee", "preferred_username": "ann", "email": "ann@example.org", "email_verified": True},
    "ben": {"name": "Ben", "preferred_username": "ben", "email": "ben@other.example", "email_verified": True},
    "cyd": {"name": "Cyd", "preferred_username": "cyd", "email": "cyd@example.org", "email_verified": False},
    "ada": {"name": "Ada", "preferred_username": "ada", "email": "ada@example.org", "email_verified": True}
    | {"realm_access": {"roles": [ADMIN, "offline_access"]}, "org": "globex"},
}


def free_port() -> int:
    """Returns a port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def issuer_at(port: int) -> str:
    return f"http://127.0.0.1:{port}"


@contextmanager
def oidc_provider(port: int, product_url: str, *, secret: str | None = CLIENT_SECRET) -> Iterator[str]:
    """Runs a provider that knows the product, and yields its issuer. Skips the test without Node.js."""
    node = require_node_and_web_client()
    if not (WEB_CLIENT / "node_modules/oidc-provider").exists():
        pytest.skip("The packages of the web client are not installed: `make web`.")
    settings = {
        "port": port,
        "product": product_url,
        "clientId": CLIENT_ID,
        "clientSecret": secret,
        "accounts": ACCOUNTS,
    }
    process = subprocess.Popen(
        [node, "e2e/oidc-provider.mjs"],
        cwd=WEB_CLIENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(settings) + "\n")
        process.stdin.flush()
        assert "ready" in process.stdout.readline()
        yield issuer_at(port)
    finally:
        process.stdin.close()
        process.wait(20)
        process.stdout.close()


@contextmanager
def oidc_web_process(
    folder: Path, mongodb_uri: str, redis_url: str, secret: str | None = CLIENT_SECRET, **variables: str
) -> Iterator[WebProcess]:
    """Runs a provider, and a web process at which people sign in through the provider."""
    port = free_port()
    settings: dict[str, Any] = {
        "NOROSHI_OIDC_ISSUER": issuer_at(port),
        "NOROSHI_OIDC_CLIENT_ID": CLIENT_ID,
        **variables,
    }
    if secret is not None:
        settings["NOROSHI_OIDC_CLIENT_SECRET"] = secret
    product_port = free_port()
    settings["NOROSHI_PUBLIC_URL"] = f"http://127.0.0.1:{product_port}"
    with (
        web_process(folder, mongodb_uri, redis_url, port=product_port, **settings) as web,
        oidc_provider(port, web.url, secret=secret),
    ):
        yield web


@dataclass
class SignInBrowser:
    """A browser that signs in by the provider. Tests read and change its cookies of the product."""

    product_url: str
    cookies: dict[str, str] = field(default_factory=dict)
    provider_cookies: httpx2.Cookies = field(default_factory=httpx2.Cookies)

    def get(self, path: str) -> httpx2.Response:
        """Opens a page of the product, and keeps its cookies."""
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        response = httpx2.get(urljoin(self.product_url, path), headers={"cookie": cookie}, timeout=60)
        for header in response.headers.get_list("set-cookie"):
            name, _, value = header.partition(";")[0].partition("=")
            self.cookies[name] = value
            if "Max-Age=0" in header:
                del self.cookies[name]
        return response

    def open_at_provider(self, address: str, form: dict[str, str] | None = None) -> httpx2.Response:
        """Opens a page of the provider, or sends it a form."""
        with httpx2.Client(cookies=self.provider_cookies, timeout=60) as client:
            response = client.get(address) if form is None else client.post(address, data=form)
            self.provider_cookies = client.cookies
            return response

    def callback_address(self, account: str, next_path: str = "/") -> str:
        """Begins a sign-in, signs in at the provider, and returns the address of the product's callback."""
        begun = self.get(f"/sign-in/oidc?{httpx2.QueryParams({'next': next_path})}")
        assert begun.status_code == 303, begun.text
        return self.log_in(begun.headers["location"], account)

    def log_in(self, address: str, account: str) -> str:
        """Fills the provider's forms until it redirects to the product. Returns the address of the callback."""
        response = self.open_at_provider(address)
        for _ in range(10):
            while response.has_redirect_location:
                address = urljoin(str(response.url), response.headers["location"])
                if address.startswith(self.product_url):
                    return address
                response = self.open_at_provider(address)
            prompt = re.search(r'name="prompt" value="(\w+)"', response.text)
            action = re.search(r'<form[^>]* action="([^"]+)"', response.text)
            assert prompt, response.text
            assert action, response.text
            form = {"prompt": prompt[1], "login": account, "password": "any"}
            response = self.open_at_provider(urljoin(str(response.url), html.unescape(action[1])), form)
        raise AssertionError("The provider does not send the browser back.")

    def sign_in(self, account: str, next_path: str = "/") -> httpx2.Response:
        """Signs in, and returns the response of the callback."""
        return self.get(self.callback_address(account, next_path))
