"""GraphiQL in a real Chromium against the real product: signed in by link, live, and without foreign files."""

import json
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from graphql import build_schema, parse, validate

from tests import programs
from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S
from tests.e2e.conftest import DeployedProduct
from tests.programs import WEB_CLIENT

ROOT = Path(__file__).resolve().parents[2]
OPERATIONS = sorted((WEB_CLIENT / "src/graphiql/operations").glob("*.graphql"))
TABS = ["WhoAmI", "ReadTimeline", "PageForward", "PostMessage", "LiveTopic", "React", "WhoReactedToMe"]
TABS += ["SchedulePost", "AddressBook", "LaunchCalls"]
PNG = b"\x89PNG"


@pytest.fixture
def chromium() -> str:
    return programs.chromium()


@pytest.fixture
def node() -> str:
    return programs.node()


@pytest.mark.parametrize("path", OPERATIONS, ids=lambda path: path.stem)
def test_prepared_graphiql_operation_is_valid(path: Path) -> None:
    schema = build_schema((ROOT / "schema/schema.graphql").read_text(encoding="utf-8"))
    assert validate(schema, parse(path.read_text(encoding="utf-8"))) == []


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_graphiql_queries_and_subscribes_from_own_origin(
    product: DeployedProduct, node: str, chromium: str, tmp_path: Path
) -> None:
    token = product.token("ann", org="graphiql", name="Ann", handle="ann")
    screenshot = tmp_path / "graphiql.png"

    report = visit(node, product.url, chromium, token, tmp_path / "profile", screenshot)

    assert report["title"] == "Noroshi GraphiQL"
    assert report["address"] == f"{product.url}/graphiql", "The token is still in the address bar."
    assert report["tabs"] == TABS
    assert report["viewer"]["handle"] == "ann"
    assert report["ready"]["__typename"] == "StreamReady"
    assert report["arrived"]["__typename"] == "MessagePosted"
    assert report["arrived"]["message"]["text"] == report["posted"]["text"] == "a fire on the hill"
    assert not report["tokenStored"], "Nobody chose to keep the headers."
    assert report["refusal"].startswith("Closed with 4401")
    assert report["complaints"] == []
    assert foreign_requests(report["requests"], product.url) == []
    assert screenshot.read_bytes().startswith(PNG)


def visit(node: str, url: str, chromium: str, token: str, profile: Path, screenshot: Path) -> dict[str, Any]:
    """Returns the report of web-client/e2e/graphiql.mjs."""
    order = {
        "url": url,
        "chromium": chromium,
        "token": token,
        "profile": str(profile),
        "screenshot": str(screenshot),
    }
    ended = subprocess.run(
        [node, "e2e/graphiql.mjs"],
        cwd=WEB_CLIENT,
        input=json.dumps(order),
        capture_output=True,
        text=True,
        timeout=SCRIPT_TIMEOUT_S,
    )
    assert ended.returncode == 0, ended.stderr
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


def foreign_requests(requests: list[str], url: str) -> list[str]:
    """Returns requests to another host or port. Data and blob URLs leave nothing."""
    own = urlsplit(url).netloc
    outward = [address for address in requests if not address.startswith(("data:", "blob:"))]
    assert outward, "No request was report at all."
    return [address for address in outward if urlsplit(address).netloc != own]
