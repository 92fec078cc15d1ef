"""Manifests of trusted documents, and the roles that may execute others."""

import json
from pathlib import Path

import pytest

from server.setting_groups.graphql import read_manifest
from server.settings import Settings
from storage.identity.roles import Role

TEXT = "query Trusted { viewer { id } }"


@pytest.mark.parametrize(
    "manifest",
    [
        {"abc": TEXT},
        {
            "format": "apollo-persisted-query-manifest",
            "version": 1,
            "operations": [{"id": "abc", "name": "Trusted", "type": "query", "body": TEXT}],
        },
    ],
    ids=["Relay and graphql-codegen", "Apollo"],
)
def test_manifests_of_common_tools_are_read(tmp_path: Path, manifest: object) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(manifest), encoding="utf-8")
    assert read_manifest(path) == {"abc": TEXT}


@pytest.mark.parametrize("text", ["", "[]", '{"a": 5}', '{"a": ""}', '{"operations": [{"id": "a"}]}'])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises((ValueError, KeyError)):
        read_manifest(path)


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("anybody", {Role.ADMIN, Role.OPERATOR, Role.SERVICE, Role.MEMBER, None}),
        ("nobody", set()),
        ("operator, SERVICE", {Role.ADMIN, Role.OPERATOR, Role.SERVICE}),
        ("MEMBER", {Role.ADMIN, Role.OPERATOR, Role.MEMBER}),
    ],
)
def test_roles_may_send_any_document(monkeypatch: pytest.MonkeyPatch, text: str, allowed: set[Role | None]) -> None:
    monkeypatch.setenv("NOROSHI_ANY_DOCUMENT_ROLES", text)
    settings = Settings()
    viewers = {role: frozenset({role}) for role in Role} | {None: frozenset()}
    assert {role for role, roles in viewers.items() if settings.may_send_any_document(roles)} == allowed


@pytest.mark.parametrize("text", ["boss", "anybody,ADMIN", "ADMIN,nobody"])
def test_other_names_are_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("NOROSHI_ANY_DOCUMENT_ROLES", text)
    with pytest.raises(ValueError, match="expected roles"):
        Settings()
