"""Only a configured provider makes calls. Without a provider nobody is called, and no outcome is invented."""

from pathlib import Path
from typing import Any

import pytest

from jobs.providers.telephony import Telephony
from jobs.providers.telephony.simulator import Simulator
from jobs.providers.telephony.twilio import TwilioTelephony
from jobs.providers.telephony.webhook import WebhookTelephony
from server import telephony
from server.settings import Settings
from server.telephony import make_telephony, telephony_lines, telephony_provider
from storage.calls.records import TelephonyProvider
from storage.heartbeats import recent_workers
from storage.mongo import Mongo
from storage.stores import Stores
from tests.client import client
from tests.serving import web_process, worker_process
from tests.storage.calls.in_memory_jobs import new_job
from tests.waiting import until

WEBHOOK_SECRET = "whsec_" + "A" * 32
LIST = {"name": "List", "scenario": "Hello", "csv": "phone_number\n+819012345678\n"}
LAUNCH = "mutation ($input: LaunchCallJobInput!) { launchCallJob(input: $input) { id } }"
CHECK = "query ($input: LaunchCallJobInput!) { checkCallList(input: $input) { rows } }"
NO_PROVIDER = {"NOROSHI_TELEPHONY": ""}

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("values", "provider"),
    [
        ({}, None),
        ({"demo": True}, "simulator"),
        ({"telephony": "simulator"}, "simulator"),
        ({"telephony": "webhook", "demo": True}, "webhook"),
    ],
)
def test_only_demo_has_a_default_provider(values: dict[str, Any], provider: str | None) -> None:
    assert telephony_provider(Settings(**values)) == provider


TWILIO = {"telephony": "twilio", "twilio_account": "AC1", "twilio_token": "secret", "twilio_from": "+15005550006"}


@pytest.mark.parametrize(
    ("values", "lines"),
    [
        ({}, []),
        ({"demo": True, "twilio_from": "+15005550006"}, [(TelephonyProvider.SIMULATOR, None)]),
        ({"telephony": "webhook"}, [(TelephonyProvider.WEBHOOK, None)]),
        (TWILIO, [(TelephonyProvider.TWILIO, "+15005550006")]),
    ],
)
def test_settings_define_provider_and_number(values: dict[str, Any], lines: list[tuple[object, object]]) -> None:
    assert [(line.provider, line.caller_number) for line in telephony_lines(Settings(**values))] == lines


async def test_no_provider_makes_no_simulator(stores: Stores) -> None:
    assert make_telephony(Settings(), stores) is None
    assert isinstance(make_telephony(Settings(telephony="simulator"), stores), Simulator)


COMPLETE_SETTINGS: dict[str, tuple[type[Telephony], dict[str, Any]]] = {
    "simulator": (Simulator, {}),
    "webhook": (WebhookTelephony, {"telephony_url": "https://calls.example", "telephony_secret": WEBHOOK_SECRET}),
    "twilio": (TwilioTelephony, TWILIO),
}


@pytest.mark.parametrize("provider", TelephonyProvider)
async def test_each_provider_of_the_settings_makes_its_own_class(provider: TelephonyProvider, stores: Stores) -> None:
    name = provider.value.lower()
    expected, values = COMPLETE_SETTINGS[name]
    assert type(make_telephony(Settings(**{"telephony": name, **values}), stores)) is expected


async def test_provider_without_branch_is_not_simulated(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(telephony._PROVIDERS, TelephonyProvider.TWILIO)
    with pytest.raises(KeyError):
        make_telephony(Settings(**TWILIO), stores)


async def test_launch_without_provider_is_unavailable(
    tmp_path: Path, mongodb_uri: str, redis_url: str, database: str
) -> None:
    with web_process(tmp_path, mongodb_uri, redis_url, database=database, **NO_PROVIDER) as web:  # type: ignore[arg-type]
        async with client(web.url, web.token("ann", roles=("OPERATOR",))) as ann:
            (error,) = (await ann.execute(LAUNCH, input=LIST))["errors"]
            assert error["extensions"] == {"code": "UNAVAILABLE", "retryAfterMs": 60_000}
            assert error["message"].endswith("Set NOROSHI_TELEPHONY.")
            assert (await ann.run("{ telephonyLines { id } }"))["telephonyLines"] == []
            assert (await ann.run(CHECK, input=LIST))["checkCallList"] == {"rows": 1}
            assert (await ann.run('{ callJobs(latest: "now") { items { id } } }'))["callJobs"]["items"] == []


async def test_calls_wait_for_worker_with_provider(
    tmp_path: Path, stores: Stores, mongodb_uri: str, redis_url: str, database: str
) -> None:
    servers = mongodb_uri, redis_url, database
    with worker_process(tmp_path / "without", *servers, **NO_PROVIDER) as worker:
        job = await stores.call_jobs.launch(new_job(), "phone_number\n+819012345678\n", None)
        await wait_for_polls(stores.mongo, 3)
        assert (await stores.call_jobs.get("acme", job.id)).progress.queued == 1
        assert await stores.mongo.find("process_locks", {"_id": "call_broker:acme"}) == []
        assert worker.wait_for_log("calls_disabled")

        async def is_called() -> bool:
            return (await stores.call_jobs.get("acme", job.id)).progress.queued == 0

        with worker_process(tmp_path / "with", *servers, NOROSHI_SIMULATOR_SPEED="1000"):
            await until(is_called)


async def wait_for_polls(mongo: Mongo, count: int) -> None:
    """Waits until the only worker has looked for overdue calls `count` more times."""

    async def poll_count() -> int:
        (worker,) = await recent_workers(mongo)
        return worker["sweeps"].get("poll_overdue_calls", {"runs": 0})["runs"]

    async def is_present() -> bool:
        return bool(await recent_workers(mongo))

    await until(is_present)
    poll_count_before = await poll_count()

    async def have_run() -> bool:
        return await poll_count() >= poll_count_before + count

    await until(have_run)
