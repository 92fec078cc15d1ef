"""GraphiQL in a real Chromium: sign-in by a link, live subscriptions, and no requests to other origins."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from graphql import build_schema, parse, validate

from tests import programs
from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests
from tests.e2e.conftest import DeployedProduct
from tests.programs import WEB_CLIENT

ROOT = Path(__file__).resolve().parents[2]
OPERATIONS = sorted((WEB_CLIENT / "src/graphiql/operations").glob("*.graphql"))
TABS = ["WhoAmI", "ReadTimeline", "PageForward", "PostMessage", "LiveTopic", "React", "WhoReactedToMe"]
TABS += ["SchedulePost", "AddressBook", "LaunchCalls"]
PNG = b"\x89PNG"


@pytest.fixture
def chromium() -> str:
    return programs.require_chromium()


@pytest.fixture
def node() -> str:
    return programs.require_node()


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

    report = run_graphiql_script(node, product.url, chromium, token, tmp_path / "profile", screenshot)

    assert report["title"] == "Noroshi GraphiQL"
    assert report["address"] == f"{product.url}/graphiql", "The token is still in the address bar."
    assert report["tabs"] == TABS
    assert report["viewer"]["handle"] == "ann"
    assert report["ready"]["__typename"] == "StreamReady"
    assert report["arrived"]["__typename"] == "MessagePosted"
    assert report["arrived"]["message"]["text"] == report["posted"]["text"] == "a fire on the hill"
    assert not report["tokenStored"], (
        "The token is in the local storage, although the user did not choose to keep headers."
    )
    assert report["refusal"].startswith("Closed with 4401")
    assert report["pageErrors"] == []
    assert foreign_requests(report["requests"], product.url) == []
    assert screenshot.read_bytes().startswith(PNG)


def run_graphiql_script(
    node: str, url: str, chromium: str, token: str, profile: Path, screenshot: Path
) -> dict[str, Any]:
    """Runs web-client/e2e/graphiql.mjs, and returns its report."""
    arguments = {
        "url": url,
        "chromium": chromium,
        "token": token,
        "profile": str(profile),
        "screenshot": str(screenshot),
    }
    completed = subprocess.run(
        [node, "e2e/graphiql.mjs"],
        cwd=WEB_CLIENT,
        input=json.dumps(arguments),
        capture_output=True,
        text=True,
        timeout=SCRIPT_TIMEOUT_S,
    )
    assert completed.returncode == 0, completed.stderr
    report: dict[str, Any] = json.loads(completed.stdout)
    return report
