"""Certificates and confirmations of Amazon SNS, from a server on loopback by https."""

from collections.abc import AsyncIterator
from ipaddress import ip_network
from pathlib import Path

import pytest

from jobs.mail.inlets.sns_client import MAX_CERTIFICATE_BYTES, SnsClient
from jobs.providers.egress import Egress
from jobs.providers.signed_webhooks import SignatureRefused
from storage.errors import Unavailable
from tests.certificates import create_tls_contexts
from tests.jobs.providers.stub_server import StubServer, redirect, respond, stub_server

pytestmark = pytest.mark.anyio


class StubSns:
    """A server in place of SNS, and a client that takes its addresses for those of SNS."""

    def __init__(self, server: StubServer, egress: Egress) -> None:
        self.server = server
        self.client = SnsClient(egress, lambda url: url.startswith(self.url("/")))

    def url(self, path: str) -> str:
        return self.server.url(path, scheme="https")


@pytest.fixture
async def sns(tmp_path: Path) -> AsyncIterator[StubSns]:
    server_side, client_side = create_tls_contexts("127.0.0.1", tmp_path)
    egress = Egress((ip_network("127.0.0.0/8"),), timeout_s=5, ssl_context=client_side)
    async with stub_server(tls=server_side) as server:
        yield StubSns(server, egress)
    await egress.aclose()


async def test_certificate_is_fetched_once(sns: StubSns) -> None:
    sns.server.answers["/a.pem"] = respond(b"PEM", content_type="application/octet-stream")
    assert [await sns.client.certificate(sns.url("/a.pem")) for _ in range(3)] == [b"PEM"] * 3
    assert sns.server.paths() == ["/a.pem"]


async def test_missing_certificate_is_refused(sns: StubSns) -> None:
    sns.server.answers["/big.pem"] = respond(b"x" * (MAX_CERTIFICATE_BYTES + 1))
    for path in ("/none.pem", "/big.pem"):
        with pytest.raises(SignatureRefused):
            await sns.client.certificate(sns.url(path))


async def test_answers_of_other_servers_are_refused(sns: StubSns) -> None:
    async with stub_server() as other:
        sns.server.answers["/away"] = redirect(other.url("/secret"))
        other.answers["/secret"] = respond(b"secret")
        with pytest.raises(SignatureRefused, match="no address of Amazon SNS"):
            await sns.client.certificate(other.url("/secret"))
        assert other.connections == 0
        with pytest.raises(SignatureRefused, match="redirects"):
            await sns.client.certificate(sns.url("/away"))


async def test_confirmation_reports_answer(sns: StubSns) -> None:
    sns.server.answers["/?Action=ConfirmSubscription"] = respond(b"<ConfirmSubscriptionResponse/>")
    assert await sns.client.confirm(sns.url("/?Action=ConfirmSubscription"))
    assert not await sns.client.confirm(sns.url("/?Action=Expired"))


async def test_unreachable_sns_is_unavailable() -> None:
    egress = Egress((ip_network("127.0.0.0/8"),))
    with pytest.raises(Unavailable):
        await SnsClient(egress, lambda _: True).certificate("https://127.0.0.1:1/a.pem")
    await egress.aclose()
