"""Clients of event streams use the running product: query, mutation, subscription, and resume after a cut."""

from typing import Any

import pytest

from tests.e2e.conftest import DeployedProduct
from tests.programs import run_client_script


@pytest.mark.parametrize("script", ["graphql-sse", "urql-sse"])
def test_stream_client_queries_subscribes_and_resumes(product: DeployedProduct, script: str) -> None:
    report = run_client_script(script, url=product.url, token=product.token("ann", org=f"clients-{script}"))
    assert report["viewer"]["handle"] == "ann"
    assert report["errorCode"] == "NOT_FOUND"
    assert_resumed(report)


def assert_resumed(report: dict[str, Any]) -> None:
    """Asserts that each event arrived once and in order: one before the disconnect, two during it, one afterwards."""
    assert (report["ready"]["__typename"], report["ready"]["resumed"]) == ("StreamReady", False)
    assert (report["resumed"]["__typename"], report["resumed"]["resumed"]) == ("StreamReady", True)
    assert report["resumed"]["cursor"] == report["first"]["cursor"]
    events = [report["first"], *report["missed"], report["live"]]
    assert [event["message"]["text"] for event in events] == ["one", "two", "three", "four"]
    assert [event["message"]["timestamp"] for event in events] == report["timestamps"]
    assert len({event["cursor"] for event in [report["ready"], *events]}) == 5
