"""Takes the screenshots of docs/: every screen of a product with demo data, light and dark, wide and narrow.

`make screenshots` runs it. It needs Node.js and Chromium, and uses the machine's fonts.
"""

import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2

from server.demo import DEMO_USERS
from server.demo.cast import all_topics
from tests import product as processes
from tests.e2e.browsing import visit
from tests.e2e.conftest import Product

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "screenshots"
ORG = "acme"
NUMBERS = 120
DEMO_LISTS = 3
DAYS = 13
FILLED_WITHIN_S = 180

TOPICS = """{
  communities(joined: true, limit: 5) {
    topics(limit: 5) { title messages(latest: "now", limit: 300) { items { id } } }
  }
}"""
LIMIT = "mutation ($input: CallLimitsInput!) { setCallLimits(input: $input) { id } }"
JOBS = '{ callJobs(latest: "now") { items { id state } } }'
CANCEL = "mutation ($id: ID!) { cancelCallJob(id: $id) { id } }"
LAUNCH = "mutation ($input: LaunchCallJobInput!) { launchCallJob(input: $input) { id state } }"
RECORD = "mutation ($events: [DeliveryEventInput!]!) { recordDeliveries(events: $events) { accepted } }"


def main(folder: Path) -> None:
    """Starts a product, fills it, and takes the screenshots."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        data_dir = Path(temporary) / "data"
        with processes.running(data_dir, "--demo", NOROSHI_SIMULATOR_SPEED="4") as run:
            product = Product(run.url, data_dir, run)
            wait_until_filled(product)
            record_mail(product)
            launch_calls(product)
            tokens = {user.handle: token(product, user.handle) for user in DEMO_USERS}
            taken = visit("screenshots.mjs", product.url, folder, tokens=tokens)
    print("\n".join(taken["files"]))


def token(product: Product, handle: str, roles: list[str] | None = None) -> str:
    """Returns the token of a demo user."""
    user = next(each for each in DEMO_USERS if each.handle == handle)
    return product.token(user.id, user.organization_id, roles or list(user.roles), user.name, user.handle)


def ask(product: Product, token: str, query: str, **variables: object) -> dict[str, Any]:
    """Runs one operation and returns its data."""
    body = {"query": query, "variables": variables}
    response = httpx2.post(
        f"{product.url}/graphql", json=body, headers={"Authorization": f"Bearer {token}"}, timeout=30
    )
    answer: dict[str, Any] = response.json()
    assert "errors" not in answer, answer
    data: dict[str, Any] = answer["data"]
    return data


def wait_until_filled(product: Product) -> None:
    """Waits until the demo's last message, which is posted at the very end, is there."""
    *_, (community, topic) = all_topics()
    reader = token(product, community.members[0])

    def filled() -> bool:
        found = [each for one in ask(product, reader, TOPICS)["communities"] for each in one["topics"]]
        return any(each["title"] == topic.title and len(each["messages"]["items"]) >= topic.size for each in found)

    assert processes.eventually(filled, FILLED_WITHIN_S, 0.5), "The demo data did not arrive."


def record_mail(product: Product) -> None:
    """Records two weeks of mail: most is delivered, some bounces, one domain is unreachable."""
    server = product.token("mail-server", ORG, ["SERVICE"])
    now = datetime.now(UTC)
    for days_ago in range(DAYS):
        events = list(day_of_mail(days_ago, now - timedelta(days=days_ago)))
        ask(product, server, RECORD, events=events)


def day_of_mail(days_ago: int, at: datetime) -> list[dict[str, Any]]:
    """Returns 400 delivery events of one day; the share of bounces differs by day."""
    bounced = (3, 5, 4, 6, 2, 9, 14, 7, 4, 3, 5, 2, 4)[days_ago]
    sent = [("ann@harbour.example", 250, "2.0.0")] * (400 - bounced)
    lost = [("gone@harbour.example", 550, "5.1.1"), ("full@valley.example", 452, "4.2.2")]
    lost += [("who@closed.example", 550, "5.1.2")] if days_ago == 1 else []
    lost += [(f"former{days_ago}-{n}@valley.example", 550, "5.1.1") for n in range(bounced - len(lost))]
    return [
        {
            "eventId": f"{days_ago}-{n}",
            "messageId": f"m{days_ago}-{n}",
            "at": at.isoformat(),
            "address": address,
            "smtpCode": code,
            "enhancedStatus": status,
        }
        for n, (address, code, status) in enumerate(sent + lost)
    ]


def launch_calls(product: Product) -> None:
    """Launches a finished list, one that waits for its calling hours, and one that is being called."""
    admin = token(product, "hana")
    assert processes.eventually(lambda: len(jobs(product, admin)) >= DEMO_LISTS, FILLED_WITHIN_S, 0.5)
    # Otherwise the demo's own lists would use most of the slots.
    for job in jobs(product, admin):
        if job["state"] not in ("REJECTED", "COMPLETED"):
            ask(product, admin, CANCEL, id=job["id"])
    ask(product, admin, LIMIT, input={"concurrentCalls": 12, "callsPerSecond": 4})
    launch(product, admin, "昨日のお礼", 6, expectedCallS=15)
    time.sleep(20)
    week = ["MON", "TUE", "WED", "THU", "FRI"]
    hour = (datetime.now(UTC).hour + 3) % 24
    window = {"start": f"{hour:02}:00", "end": f"{(hour + 1) % 24:02}:00", "timeZone": "UTC", "weekdays": week}
    launch(product, admin, "Autumn survey", 40, window=window)
    launch(product, admin, "健診のご案内 11月", NUMBERS, expectedCallS=15)


def jobs(product: Product, admin: str) -> list[dict[str, Any]]:
    """Returns the organization's lists."""
    found: list[dict[str, Any]] = ask(product, admin, JOBS)["callJobs"]["items"]
    return found


def launch(product: Product, admin: str, name: str, numbers: int, **more: object) -> None:
    """Returns a list of `count` numbers."""
    names = ("佐藤 花", "田中 健", "鈴木 雪", "山本 空", "Emma Wright")
    rows = "".join(f"+8190{12_000_000 + 7919 * n % 9_000_000},{names[n % 5]},{9 + n % 8}:30\n" for n in range(numbers))
    text = "{name}さん、健診は{time}からです。変更は1を押してください。"
    ask(
        product, admin, LAUNCH, input={"name": name, "scenario": text, "csv": f"phone_number,name,time\n{rows}", **more}
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
