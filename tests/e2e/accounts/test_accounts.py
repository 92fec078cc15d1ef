"""Local accounts of a product that starts with empty data, in a real Chromium."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from storage.identity.accounts.documents import InvitationDocument
from storage.identity.accounts.invitations import INVITATIONS
from storage.mongo import connect
from storage.secrets.random_tokens import new_token, token_digest
from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.product import RunningProduct, first_admin_link, running_product

pytestmark = pytest.mark.anyio

ORGANIZATION = "main"
NEW, CURRENT = "new-password", "current-password"


async def add_expired_invitation(product: RunningProduct) -> str:
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
    port = product.database_port("mongod")
    mongo = connect(f"mongodb://127.0.0.1:{port}/?directConnection=true", "noroshi")
    try:
        await mongo[INVITATIONS].insert_one(document)
    finally:
        await mongo.close()
    return f"{product.url}/#invitation={token}"


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 120)
async def test_people_get_accounts_and_keep_them(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with running_product(data_dir, NOROSHI_OPEN_REGISTRATION="true") as product:
        links = {"firstAdmin": first_admin_link(product), "expired": await add_expired_invitation(product)}
        mails = str(data_dir / "mail")
        report = run_browser_script("accounts/accounts.mjs", product.url, tmp_path, **links, mails=mails)
        address = product.url

    first_admin = report["firstAdmin"]
    assert "easy to guess" in first_admin.pop("refusal")
    assert first_admin == {"name": "Ada", "roles": ["ADMIN"], "hasScriptableToken": False, "isLinkHidden": True}
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
