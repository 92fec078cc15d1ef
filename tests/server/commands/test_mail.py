"""`noroshi mail ...` on real servers: imports, reports, log tailing and errors."""

import asyncio
import io
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pymongo
import pytest

from server.commands.cli import run
from server.embedded import embedded_servers, prepare_data_dir, stored_secret
from storage.heartbeats import recent_mail_tails
from storage.stores import open_stores
from tests.jobs.mail.test_reports import DSN
from tests.keys import ADDRESS_KEYS, ADDRESS_KEYS_SETTING
from tests.preloaded import PreloadedProcess, preloaded_command
from tests.product import environment, eventually
from tests.storage.mail.events import hard, yesterday_noon
from tests.storage.mail.scenario import MailScenario

ROWS = "address,success,soft_bounce,hard_bounce\nAnn@Example.org,3,0,0\nbob@example.org,0,1,2\n"


@pytest.fixture
def variables(mongodb_uri: str, database: str) -> dict[str, str]:
    return {"MONGODB_URI": mongodb_uri, "NOROSHI_DATABASE": database, "NOROSHI_ADDRESS_KEYS": ADDRESS_KEYS_SETTING}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name in set(os.environ) - set(environment()):
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def run_with_mail(mongodb_uri: str, redis_url: str, database: str) -> Callable[[Callable[[MailScenario], Any]], Any]:
    """Returns a function that runs a coroutine function with acme's mail and returns its result."""

    def run_coroutine(function: Callable[[MailScenario], Coroutine[None, None, Any]]) -> Any:
        async def with_stores() -> Any:
            async with open_stores(mongodb_uri, redis_url, database, address_keys=ADDRESS_KEYS) as stores:
                return await function(MailScenario(stores, "acme"))

        return asyncio.run(with_stores())

    return run_coroutine


@pytest.fixture
def csv_file(tmp_path: Path) -> Path:
    file = tmp_path / "rows.csv"
    file.write_text(ROWS)
    return file


def test_mail_import_then_verify_succeeds(
    csv_file: Path, run_with_mail: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["mail", "verify", str(csv_file), "--org", "acme"]) == 1
    output = capsys.readouterr().out
    assert "ann@example.org: success 3 (book: 0)" in output
    assert "bob@example.org: soft_bounce 1 (book: 0), hard_bounce 2 (book: 0)" in output
    assert run(["mail", "import", str(csv_file), "--org", "acme", "--source", "mysql"]) == 0
    assert "2 addresses imported" in capsys.readouterr().out
    assert run(["mail", "verify", str(csv_file), "--org", "acme"]) == 0
    assert "2 addresses, 0 differ" in capsys.readouterr().out
    standing = run_with_mail(lambda mail: mail.standing("bob@example.org"))
    assert (standing.blocked, standing.soft_bounce, standing.hard_bounce) == (True, 1, 2)


def test_addresses_of_a_file_are_blocked_and_unblocked(
    tmp_path: Path, run_with_mail: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "addresses.txt"
    file.write_text("\ufeffAnn@example.org\n\n  bob@example.org  \r\n", encoding="utf-8")
    options = [str(file), "--org", "acme", "--reason"]
    assert run(["mail", "block", *options, "asked by mail"]) == 0
    assert "2 of 2 addresses blocked." in capsys.readouterr().out
    assert run(["mail", "block", *options, "asked by mail"]) == 0
    assert "0 of 2 addresses blocked." in capsys.readouterr().out
    standing = run_with_mail(lambda mail: mail.standing("bob@example.org"))
    assert (standing.blocked, standing.verdict.rule) == (True, "BY_HAND")
    assert "command-line" in standing.verdict.detail
    assert run(["mail", "blocked", "--org", "acme"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header == "address_hash,address,domain,rule,detail"
    assert [row.split(",")[1:4] for row in rows] == [["", "example.org", "BY_HAND"]] * 2
    assert run(["mail", "unblock", *options, "sorry"]) == 0
    assert not run_with_mail(lambda mail: mail.standing("ann@example.org")).blocked
    file.write_text("ann@example.org\nnonsense\n")
    assert run(["mail", "block", *options, "why"]) == 1
    assert "line 2: no mail address. Nothing was changed." in capsys.readouterr().err
    assert not run_with_mail(lambda mail: mail.standing("ann@example.org")).blocked
    assert run(["mail", "block", *options, ""]) == 2


def test_mail_verify_lists_lookup_differences(
    csv_file: Path, run_with_mail: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    async def look_up(mail: MailScenario) -> None:
        standings = await mail.standings(["ann@example.org", "bob@example.org"])
        await mail.stores.address_book.record_differences("acme", standings, {"ann@example.org": True})

    run_with_mail(look_up)
    run(["mail", "verify", str(csv_file), "--org", "acme"])
    output = capsys.readouterr().out
    assert "ann@example.org: in lookups, only the legacy book blocked it" in output
    assert "1 differed in lookups" in output


def test_mail_rebuild_removes_source(
    csv_file: Path, run_with_mail: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    run(["mail", "import", str(csv_file), "--org", "acme", "--source", "mysql"])
    run_with_mail(lambda mail: mail.add_events(hard("ann@example.org"), source="broken"))
    assert run_with_mail(lambda mail: mail.standing()).blocked
    assert run(["mail", "rebuild", "--org", "acme", "--without", "broken"]) == 0
    assert not run_with_mail(lambda mail: mail.standing()).blocked
    assert run(["mail", "rebuild", "--org", "acme", "--without", "brken"]) == 1
    assert "it has: mysql" in capsys.readouterr().err
    assert run(["mail", "rebuild", "--org", "acme"]) == 0
    assert run(["mail", "verify", str(csv_file), "--org", "acme"]) == 0


def test_mail_report_reads_file(
    tmp_path: Path, run_with_mail: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report.eml"
    file.write_text(DSN.replace("20 Nov 2026", yesterday_noon().strftime("%d %b %Y")))
    assert run(["mail", "report", str(file), "--org", "acme"]) == 0
    assert run(["mail", "report", str(file), "--org", "acme"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "3 events recorded, 0 duplicates.",
        "0 events recorded, 3 duplicates.",
    ]
    run_with_mail(lambda mail: mail.aggregate())
    assert run_with_mail(lambda mail: mail.standing("gone@example.org")).blocked


def test_mail_report_reads_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Subject: hello\n\nhello\n")))
    assert run(["mail", "report", "-", "--org", "acme"]) == 1
    expected = "noroshi: The message is not a delivery report: expected a DSN, an ARF complaint or a bounce.\n"
    assert capsys.readouterr() == ("", expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("address,success\n", "its header lacks hard_bounce, soft_bounce"),
        (ROWS + "nobody,1,2,3\n", "line 4: no mail address"),
        (ROWS + "x@example.org,1,,3\n", "line 4: expected whole numbers"),
        (ROWS + "x@example.org,1,-2,3\n", "line 4: expected numbers from 0 on"),
        ("\xff", "its header lacks"),
    ],
)
def test_mail_import_bad_file_is_one_line_and_writes_nothing(
    csv_file: Path, text: str, expected: str, run_with_mail: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    csv_file.write_text(text)
    assert run(["mail", "import", str(csv_file), "--org", "acme", "--source", "x"]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert expected in output.err
    assert output.err.count("\n") == 1
    assert run_with_mail(lambda mail: mail.standing("ann@example.org")).success == 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["mail"], 2),
        (["mail", "fly"], 2),
        (["mail", "import", "x.csv", "--org", "acme"], 2),
        (["mail", "import", "x.csv", "--org", "acme", "--source", ""], 2),
        (["mail", "tail", "x"], 2),
        (["mail", "import", "none.csv", "--org", "acme", "--source", "x"], 1),
        (["mail", "report", "none.eml", "--org", "acme"], 1),
    ],
)
def test_mail_wrong_usage_exits_2_and_failure_exits_1(
    arguments: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == code


@pytest.mark.parametrize("command", ["tail", "report", "import", "verify", "rebuild"])
def test_mail_commands_have_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mail", command, "--help"]) == 0
    assert f"noroshi mail {command}" in capsys.readouterr().out


def test_mail_tail_survives_kills(tmp_path: Path, variables: dict[str, str], run_with_mail: Callable[..., Any]) -> None:
    log = tmp_path / "mail.log"

    def write_bounces(first: int, last: int) -> None:
        with log.open("a") as file:
            for number in range(first, last):
                file.write(
                    f"{yesterday_noon().isoformat()} mx postfix/smtp[7]: 4Q{number:08d}: to=<a{number}@example.org>, "
                    "relay=x, delay=1, dsn=5.1.1, status=bounced (said: 550 5.1.1 unknown)\n"
                )

    def start_tail() -> PreloadedProcess:
        command = ["mail", "tail", str(log), "--org", "acme", "--state", str(tmp_path / "state")]
        return preloaded_command(command, environment(**variables), tmp_path / "output")

    with pymongo.MongoClient[dict[str, Any]](variables["MONGODB_URI"]) as client:
        database = client[variables["NOROSHI_DATABASE"]]
        for round_ in range(2):
            write_bounces(round_ * 40, round_ * 40 + 40)
            tail = start_tail()
            assert eventually(lambda n=round_: database["mail_ledger"].count_documents({}) >= n * 40 + 20)  # type: ignore[misc]
            tail.kill()
            tail.wait(60)
        tail = start_tail()
        assert eventually(lambda: database["mail_ledger"].count_documents({}) == 80)
        assert eventually(lambda: database["mail_tails"].count_documents({}))
        tail.terminate()
        tail.wait(60)
    assert "@example.org" not in (tmp_path / "output").read_text()
    tails = run_with_mail(lambda mail: recent_mail_tails(mail.stores.mongo))
    assert ("acme", str(log)) in [(each["org"], each["file"]) for each in tails]


@pytest.fixture
def embedded_data_dir(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a data folder with an empty database and a key, as the first start of the product leaves it."""
    monkeypatch.delenv("MONGODB_URI")
    monkeypatch.delenv("NOROSHI_ADDRESS_KEYS")
    stored_secret(prepare_data_dir(data_dir), "address_key")
    asyncio.run(_start_once(data_dir))
    return data_dir


async def _start_once(data_dir: Path) -> None:
    async with embedded_servers(data_dir, need_redis=False):
        pass


def test_mail_without_uri_uses_embedded_server(
    csv_file: Path, embedded_data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--org", "acme", "--data-dir", str(embedded_data_dir)]
    assert run(["mail", "import", str(csv_file), "--source", "x", *options]) == 0
    assert run(["mail", "verify", str(csv_file), *options]) == 0
    assert "0 differ" in capsys.readouterr().out
