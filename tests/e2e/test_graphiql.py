"""GraphiQL in a real Chromium: sign-in by a link, live subscriptions, and no requests to other origins."""

from pathlib import Path

import pytest
from graphql import build_schema, parse, validate

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct
from tests.programs import WEB_CLIENT

ROOT = Path(__file__).resolve().parents[2]
OPERATIONS = sorted((WEB_CLIENT / "src/graphiql/operations").glob("*.graphql"))
TABS = ["WhoAmI", "ReadTimeline", "PageForward", "PostMessage", "LiveTopic", "React", "WhoReactedToMe"]
TABS += ["SchedulePost", "AddressBook", "LaunchCalls"]
PNG = b"\x89PNG"


@pytest.mark.parametrize("path", OPERATIONS, ids=lambda path: path.stem)
def test_prepared_graphiql_operation_is_valid(path: Path) -> None:
    schema = build_schema((ROOT / "schema/schema.graphql").read_text(encoding="utf-8"))
    assert validate(schema, parse(path.read_text(encoding="utf-8"))) == []


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_graphiql_queries_and_subscribes_from_own_origin(product: DeployedProduct, tmp_path: Path) -> None:
    token = product.token("ann", org="graphiql", name="Ann", handle="ann")
    screenshot = tmp_path / "graphiql.png"

    paths = {"profile": str(tmp_path / "profile"), "screenshot": str(screenshot)}
    report = run_browser_script("graphiql.mjs", product.url, tmp_path, token=token, **paths)

    assert report["title"] == "Noroshi GraphiQL"
    assert report["address"] == f"{product.url}/graphiql", "The token is still in the address bar."
    assert report["tabs"] == TABS
    assert report["viewer"]["handle"] == "ann"
    assert report["viewerOfClient"]["handle"] == "ann"
    assert report["ready"]["__typename"] == "StreamReady"
    assert report["receivedEvent"]["__typename"] == "MessagePosted"
    assert report["receivedEvent"]["message"]["text"] == report["posted"]["text"] == "a fire on the hill"
    assert not report["isTokenStored"], (
        "The token is in the local storage, although the user did not choose to keep headers."
    )
    assert report["rejectionMessage"].startswith("Closed with 4401")
    assert report["pageErrors"] == []
    assert foreign_requests(report["requests"], product.url) == []
    assert screenshot.read_bytes().startswith(PNG)
