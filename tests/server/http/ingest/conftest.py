"""Fixtures of tests of the ingest routes: a web process for each module, and a service key for them."""

import httpx2
import pytest

from tests.serving import WebProcess

CREATE_KEY = """
mutation { createServiceKey(input: {name: "Inlet", scopes: ["mail:ingest"]}) { secret } }
"""


@pytest.fixture(scope="module")
def key(web: WebProcess) -> str:
    """A service key with the scope of the ingest routes."""
    headers = {"authorization": f"Bearer {web.token('ada', roles=('ADMIN',))}"}
    answer = httpx2.post(f"{web.url}/graphql", json={"query": CREATE_KEY}, headers=headers, timeout=60).json()
    return str(answer["data"]["createServiceKey"]["secret"])
