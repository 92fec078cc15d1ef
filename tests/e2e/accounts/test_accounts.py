"""Local accounts of a product that starts with empty data, in a real Chromium: passwords, passkeys and a provider."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pymongo
import pytest

from server.first_admin import first_admin_link
from server.settings import Settings
from storage.identity.accounts.documents import InvitationDocument
from storage.identity.accounts.invitations import INVITATIONS
from storage.mongo import connect
from storage.secrets.random_tokens import new_token, token_digest
from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct
from tests.oidc_provider import CLIENT_ID, CLIENT_SECRET, free_port, issuer_at, oidc_provider
from tests.product import first_admin_link as printed_admin_link
from tests.product import running_product

ORGANIZATION = "main"
NEW, CURRENT = "new-password", "current-password"

pytestmark = [pytest.mark.anyio, pytest.mark.browser, pytest.mark.timeout(SCRIPT_TIMEOUT_S + 120)]


@pytest.fixture(scope="module")
def started_product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedProduct]:
    """A product of the organization's people alone, who sign in by passwords, by passkeys and at a provider."""
    data_dir, provider_port, port = tmp_path_factory.mktemp("accounts") / "data", free_port(), free_port()
    address = f"http://localhost:{port}"
    variables = {
        "NOROSHI_PUBLIC_URL": address,
        "NOROSHI_OPEN_REGISTRATION": "true",
        "NOROSHI_LOCAL_ACCOUNTS": "true",
        "NOROSHI_OIDC_ISSUER": issuer_at(provider_port),
        "NOROSHI_OIDC_CLIENT_ID": CLIENT_ID,
        "NOROSHI_OIDC_CLIENT_SECRET": CLIENT_SECRET,
    }
    with (
        running_product(data_dir, "--port", str(port), **variables) as processes,
        oidc_provider(provider_port, address),
    ):
        yield DeployedProduct(address, data_dir, processes, ORGANIZATION)


@pytest.fixture
def empty_product(started_product: DeployedProduct) -> Iterator[DeployedProduct]:
    """The product as after its first start. Afterwards deletes all documents that the test has added."""
    with pymongo.MongoClient[dict[str, Any]](started_product.mongodb_uri) as mongo:
        database = mongo["noroshi"]
        before = {name: database[name].distinct("_id") for name in database.list_collection_names()}
        yield started_product
        for name in database.list_collection_names():
            database[name].delete_many({"_id": {"$nin": before.get(name, [])}})


@pytest.fixture(scope="module")
def printed_links(started_product: DeployedProduct) -> list[str]:
    """The link that the product has printed, until a test has used it."""
    return [printed_admin_link(started_product.processes)]


@pytest.fixture
def first_admin(empty_product: DeployedProduct, printed_links: list[str]) -> str:
    """The link that makes the first ADMIN: the printed one, and new ones for further tests."""
    if printed_links:
        return printed_links.pop()
    settings = Settings(mongodb_uri=empty_product.mongodb_uri, organization=ORGANIZATION)
    link = asyncio.run(first_admin_link(settings, empty_product.url))
    assert link is not None
    return link


async def add_expired_invitation(product: DeployedProduct) -> str:
    """Stores an invitation that expired an hour ago, which takes an hour through the API. Returns its link."""
    token, now = new_token(), datetime.now(UTC)
    document: InvitationDocument = {
        "_id": "expired",
        "org": ORGANIZATION,
        "digests": [token_digest(token)],
        "role": "MEMBER",
        "max_uses": 1,
        "users": [],
        "creator": "nobody",
        "at": now - timedelta(hours=2),
        "expires_at": now - timedelta(hours=1),
    }
    mongo = connect(product.mongodb_uri, "noroshi")
    try:
        await mongo[INVITATIONS].insert_one(document)
    finally:
        await mongo.close()
    return f"{product.url}/#invitation={token}"


async def test_people_get_accounts_and_keep_them(
    empty_product: DeployedProduct, first_admin: str, tmp_path: Path
) -> None:
    links = {"firstAdmin": first_admin, "expired": await add_expired_invitation(empty_product)}
    mails, address = str(empty_product.data_dir / "mail"), empty_product.url

    report = run_browser_script("accounts/accounts.mjs", address, tmp_path, **links, mails=mails)

    administrator = report["firstAdmin"]
    assert "easy to guess" in administrator.pop("refusal")
    assert administrator.pop("badHandle").startswith("A handle has 1 to 30 of the characters")
    assert administrator.pop("chosen") == "ada_lee"
    assert administrator == {"name": "Ada", "roles": ["ADMIN"], "hasScriptableToken": False, "isLinkHidden": True}
    assert "not valid" in report["usedLink"]
    assert report["invited"] == {"name": "Bea", "roles": ["OPERATOR"], "hasScriptableToken": False}
    person = {"hasScriptableToken": False, "isLinkHidden": True}
    assert report["proved"] == {"name": "Dan", "roles": ["OPERATOR"], **person}
    assert report["registered"] == {"name": "Eli", "roles": ["MEMBER"], **person}
    for notice, word in zip(report["notices"], ("used up", "withdrawn", "expired"), strict=True):
        assert word in notice
    assert report["joined"] == "Hilltops"
    assert report["line"].startswith("No line is connected")
    assert report["signedIn"]["refusal"].startswith("メールアドレスまたはパスワードが違います")
    assert (report["signedIn"]["name"], report["signedIn"]["afterReload"]) == ("Bea", "Bea")
    assert report["reset"]["name"] == "Bea"
    fields = report["passwordFields"]
    assert all(field["type"] == "password" and field["isPasted"] for field in fields), fields
    assert [field["purpose"] for field in fields] == [NEW, NEW, NEW, NEW, CURRENT, NEW, CURRENT, NEW]
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], address) == []


def test_everybody_posts_on_the_first_day(empty_product: DeployedProduct, first_admin: str, tmp_path: Path) -> None:
    report = run_browser_script("accounts/first-day.mjs", empty_product.url, tmp_path, firstAdmin=first_admin)

    assert report["methods"] == ["OIDC", "PASSWORD", "PASSKEY"]
    posts = {"Ann Lee": "Hello from Ann Lee", "Bea": "Hello from Bea", "Cyd": "Hello from Cyd"}
    posts["Weather station"] = "Wind from the west"
    assert len(report["posts"]) == len(posts)
    for shown, (name, text) in zip(report["posts"], posts.items(), strict=True):
        assert name in shown
        assert text in shown
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])


def test_account_needs_no_password(empty_product: DeployedProduct, first_admin: str, tmp_path: Path) -> None:
    report = run_browser_script("accounts/passkeys.mjs", empty_product.url, tmp_path, firstAdmin=first_admin)

    assert report["methods"] == ["PASSKEY", "PASSKEY"]
    assert report["refusal"].startswith("The passkey dialog did not finish")
    assert report["list"]["removalRefusal"].startswith("This is your only way to sign in.")
    assert report["list"]["additionRefusal"].startswith("This passkey can’t be added")
    assert len(report["list"]["remaining"]) == 1
    assert report["list"]["remaining"][0].startswith("Key ring")
    assert report["violations"] == []
    assert report["overflowingScreens"] == []
    assert report["pageErrors"] == []
    assert foreign_requests(report["requests"], empty_product.url) == []
