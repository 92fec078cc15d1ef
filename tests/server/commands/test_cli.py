"""The command `noroshi`: output, exit codes and errors."""

import os
import subprocess
from importlib import metadata
from pathlib import Path

import jwt
import pytest
from typer.main import get_group

from server.commands.cli import app, run
from server.embedded import prepare_data_dir, stored_secret
from storage.identity.roles import Role
from tests.product import NOROSHI, environment
from tests.server.refused_starts import refusal

COMMANDS = tuple(name for name, command in get_group(app).commands.items() if not command.hidden)
SECRET = "a secret of more than thirty-two bytes"


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in set(os.environ) - set(environment()):
        monkeypatch.delenv(name)


def claims(token: str, key: str) -> dict[str, object]:
    """Returns the verified claims of a token."""
    return dict(jwt.decode(token.strip(), key, algorithms=["HS256"]))


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    output = capsys.readouterr().out
    assert all(f" {command} " in output for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0
    output = capsys.readouterr().out
    assert f"noroshi {command}" in output
    assert "--fd" not in output
    assert "--parent" not in output


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "Missing command"),
        (["fly"], "No such command"),
        (["up", "--prot", "1"], "No such option"),
        (["up", "--port", "70000"], "65535"),
        (["up", "--port", "http"], "--port"),
        (["up", "--web", "0"], "--web"),
        (["token", "--user", "u1"], "--org"),
        (["token", "--user", "u1", "--org", "o1", "--role", "KING"], "KING"),
        (["token", "--user", "u1", "--org", "o1", "--ttl-s", "0"], "--ttl-s"),
        (["schema", "extra"], "extra"),
        (["worker", "--queues", "nope"], "previews"),
    ],
)
def test_wrong_usage_is_one_line_with_code_2(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("noroshi: ")
    assert output.err.count("\n") == 1
    assert expected in output.err


def test_invalid_setting_is_one_line_with_code_1() -> None:
    """The command runs in a process of its own, as in a terminal."""
    result = subprocess.run(
        [*NOROSHI, "up"],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(NOROSHI_EGRESS_ALLOW="everywhere"),
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        "noroshi: NOROSHI_EGRESS_ALLOW: expected address ranges such as 10.0.0.0/8, "
        "separated by commas, got 'everywhere'\n"
    )


@pytest.mark.parametrize("command", ["web", "worker"])
def test_single_process_without_servers_is_refused(command: str, tmp_path: Path) -> None:
    expected = "noroshi: MONGODB_URI and REDIS_URL must be set; `noroshi up` starts servers of its own.\n"
    assert refusal(tmp_path, command) == expected


def test_web_without_token_settings_is_refused(
    mongodb_uri: str, redis_url: str, shared_database: str, tmp_path: Path
) -> None:
    servers = {"MONGODB_URI": mongodb_uri, "REDIS_URL": redis_url, "NOROSHI_DATABASE": shared_database}
    assert refusal(tmp_path, "web", **servers).startswith(
        "noroshi: NOROSHI_AUTH_SECRET or NOROSHI_AUTH_JWKS_URL is needed"
    )


DATA_COMMANDS = (
    "migrate",
    "migrate --check",
    "key create --org acme --name ci --scope mail:ingest",
    "key list --org acme",
    "calls check-numbers --org acme",
    "mail import rows.csv --org acme --source old",
    "mail verify rows.csv --org acme",
    "mail rebuild --org acme",
    "mail report report.eml --org acme",
    "mail tail mail.log --org acme",
    "token --user ann --org acme",
    "demo",
    "status",
    "first-admin",
)


@pytest.mark.parametrize("command", DATA_COMMANDS)
def test_command_without_data_is_refused_and_leaves_nothing(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command in the wrong folder would otherwise start an empty database, and say that all is well."""
    for name, text in (("rows.csv", "address,success,soft_bounce,hard_bounce\n"), ("report.eml", ""), ("mail.log", "")):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert run(command.split()) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("noroshi: ")
    assert output.err.count("\n") == 1
    assert "--data-dir" in output.err
    assert sorted(tmp_path.iterdir()) == before


def test_address_keys_are_not_generated_for_another_database(
    tmp_path: Path, mongodb_uri: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MONGODB_URI", mongodb_uri)
    assert run(["mail", "rebuild", "--org", "acme"]) == 1
    assert "NOROSHI_ADDRESS_KEYS is not set" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"noroshi {metadata.version('noroshi')}\n"


def test_token_has_requested_claims(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NOROSHI_AUTH_SECRET", SECRET)
    arguments = ["--user", "u1", "--org", "o1", "--name", "Mika", "--handle", "mika", "--ttl-s", "60"]
    arguments += ["--email", "mika@example.org", "--role", "ADMIN", "--role", "MEMBER"]
    assert run(["token", *arguments]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    payload = claims(output.out, SECRET)
    assert (payload["sub"], payload["org"], payload["name"], payload["handle"]) == (
        "u1",
        "o1",
        "Mika",
        "mika",
    )
    assert (payload["roles"], payload["email"]) == (["ADMIN", "MEMBER"], "mika@example.org")
    assert not data_dir.exists()


def test_token_with_invalid_email_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NOROSHI_AUTH_SECRET", SECRET)
    assert run(["token", "--user", "u1", "--org", "o1", "--email", "mika"]) == 1
    assert "'mika' is not a mail address" in capsys.readouterr().err


@pytest.mark.parametrize("role", [role.value for role in Role])
def test_token_accepts_every_role(
    role: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NOROSHI_AUTH_SECRET", SECRET)
    assert run(["token", "--user", "u1", "--org", "o1", "--role", role]) == 0
    assert claims(capsys.readouterr().out, SECRET)["roles"] == [role]


def test_token_is_signed_with_secret_of_data_dir(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored_secret(prepare_data_dir(data_dir), "auth_secret")
    assert run(["token", "--user", "u1", "--org", "o1", "--data-dir", str(data_dir)]) == 0
    payload = claims(capsys.readouterr().out, stored_secret(prepare_data_dir(data_dir), "auth_secret"))
    assert payload["roles"] == ["MEMBER"]


def test_token_with_identity_provider_is_refused(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NOROSHI_AUTH_JWKS_URL", "https://issuer.example/keys")
    assert run(["token", "--user", "u1", "--org", "o1", "--data-dir", str(data_dir)]) == 1
    assert "NOROSHI_AUTH_JWKS_URL" in capsys.readouterr().err


def test_schema_command_prints_exported_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema"]) == 0
    assert capsys.readouterr().out == (Path(__file__).parents[3] / "schema" / "schema.graphql").read_text()


def test_demo_without_product_is_one_line(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored_secret(prepare_data_dir(data_dir), "auth_secret")
    assert run(["demo", "--url", "http://127.0.0.1:1", "--data-dir", str(data_dir)]) == 1
    output = capsys.readouterr()
    assert output.err.startswith("noroshi: ")
    assert (output.out, output.err.count("\n")) == ("", 1)
