"""Takes the screenshots of docs/: every screen of a product with demo data, in both themes and several widths.

`make screenshots` runs this module, which needs Node.js and Chromium, and uses the machine's fonts.
"""

import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2

from server.demo import DEMO_USERS
from server.demo.cast import all_topics
from tests.e2e.browser_scripts import run_browser_script
from tests.e2e.conftest import DeployedProduct
from tests.product import eventually, running_product

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "screenshots"
ORG = "acme"
PHONE_NUMBERS = 120
DEMO_JOBS = 3
DEMO_DATA_DEADLINE_S = 480

TOPICS = """{
  communities(joined: true, limit: 5) {
    topics(limit: 5) { title messages(latest: "now", limit: 300) { items { id } } }
  }
}"""
SET_LIMITS = "mutation ($input: CallLimitsInput!) { setCallLimits(input: $input) { id } }"
JOBS = '{ callJobs(latest: "now") { items { id state } } }'
CANCEL = "mutation ($id: ID!) { cancelCallJob(id: $id) { id } }"
LAUNCH = "mutation ($input: LaunchCallJobInput!) { launchCallJob(input: $input) { id state } }"


def main(folder: Path) -> None:
    """Starts a product, fills it, and takes the screenshots."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        data_dir = Path(temporary) / "data"
        with running_product(
            data_dir, "--demo", NOROSHI_SIMULATOR_SPEED="4", NOROSHI_EGRESS_ALLOW="127.0.0.0/8"
        ) as processes:
            product = DeployedProduct(processes.url, data_dir, processes)
            wait_for_demo_data(product)
            launch_calls(product)
            tokens = {user.handle: token(product, user.handle) for user in DEMO_USERS}
            report = run_browser_script("screenshots.mjs", product.url, folder, tokens=tokens)
    print("\n".join(report["files"]))


def token(product: DeployedProduct, handle: str, roles: list[str] | None = None) -> str:
    """Returns the token of a demo user."""
    user = next(each for each in DEMO_USERS if each.handle == handle)
    return product.token(user.id, user.organization_id, roles or list(user.roles), user.name, user.handle)


def run_operation(product: DeployedProduct, token: str, query: str, **variables: object) -> dict[str, Any]:
    """Runs one operation and returns its data. While the demo is filled, its person may have too many operations."""
    body, headers = {"query": query, "variables": variables}, {"Authorization": f"Bearer {token}"}
    result: dict[str, Any] = {}

    def is_answered() -> bool:
        result.clear()
        result.update(httpx2.post(f"{product.url}/graphql", json=body, headers=headers, timeout=30).json())
        return all(error["extensions"]["code"] != "RATE_LIMITED" for error in result.get("errors", ()))

    assert eventually(is_answered, DEMO_DATA_DEADLINE_S, 1.0), result
    assert "errors" not in result, result
    data: dict[str, Any] = result["data"]
    return data


def wait_for_demo_data(product: DeployedProduct) -> None:
    """Waits for the last message of the demo data."""
    *_, (community, topic) = all_topics()
    reader = token(product, community.members[0])

    def is_complete() -> bool:
        communities = run_operation(product, reader, TOPICS)["communities"]
        topics = [each for community in communities for each in community["topics"]]
        return any(each["title"] == topic.title and len(each["messages"]["items"]) >= topic.size for each in topics)

    assert eventually(is_complete, DEMO_DATA_DEADLINE_S, 0.5), "The demo data did not arrive."


def launch_calls(product: DeployedProduct) -> None:
    """Launches three call jobs: a finished one, one that waits for its calling hours, and a running one."""
    admin = token(product, "hana")
    assert eventually(lambda: len(jobs(product, admin)) >= DEMO_JOBS, DEMO_DATA_DEADLINE_S, 0.5)
    # The demo's own lists would use most of the call slots.
    for job in jobs(product, admin):
        if job["state"] not in ("REJECTED", "COMPLETED"):
            run_operation(product, admin, CANCEL, id=job["id"])
    run_operation(product, admin, SET_LIMITS, input={"concurrentCalls": 12, "callsPerSecond": 4})
    launch_job(product, admin, "昨日のお礼", 6, expectedCallS=15)
    time.sleep(20)
    weekdays = ["MON", "TUE", "WED", "THU", "FRI"]
    hour = (datetime.now(UTC).hour + 3) % 24
    window = {"start": f"{hour:02}:00", "end": f"{(hour + 1) % 24:02}:00", "timeZone": "UTC", "weekdays": weekdays}
    launch_job(product, admin, "Autumn survey", 40, window=window)
    launch_job(product, admin, "健診のご案内 11月", PHONE_NUMBERS, expectedCallS=15)


def jobs(product: DeployedProduct, admin: str) -> list[dict[str, Any]]:
    """Returns the organization's call jobs."""
    items: list[dict[str, Any]] = run_operation(product, admin, JOBS)["callJobs"]["items"]
    return items


def launch_job(product: DeployedProduct, admin: str, name: str, numbers: int, **more: object) -> None:
    """Launches a call job with this many numbers."""
    names = ("佐藤 花", "田中 健", "鈴木 雪", "山本 空", "Emma Wright")
    rows = "".join(f"+8190{12_000_000 + 7919 * n % 9_000_000},{names[n % 5]},{9 + n % 8}:30\n" for n in range(numbers))
    text = "{name}さん、健診は{time}からです。変更は1を押してください。"
    run_operation(
        product, admin, LAUNCH, input={"name": name, "scenario": text, "csv": f"phone_number,name,time\n{rows}", **more}
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
