"""Settings of GraphQL operations: which documents clients may execute."""

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator
from pydantic_settings import NoDecode

from server.setting_groups.http import HttpSettings
from server.setting_groups.values import COMMA_SEPARATED, setting
from storage.identity.roles import Role, with_included

ANYBODY, NOBODY = "ANYBODY", "NOBODY"


def _checked_roles(value: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the names of roles in upper case. Raises: ValueError for others, and for a role beside ANYBODY."""
    names = tuple(each.upper() for each in value)
    if names not in ((ANYBODY,), (NOBODY,)) and not (names and set(names) <= Role.__members__.keys()):
        raise ValueError("expected roles")
    return names


def read_manifest(path: Path) -> dict[str, str]:
    """Returns the documents of a manifest by their ids, which are their SHA-256 in hexadecimal as a rule.

    Reads the manifests of Apollo, and JSON objects of ids and texts as Relay and graphql-codegen write them. Raises:
    ValueError, OSError.
    """
    manifest = json.loads(path.read_text(encoding="utf-8"))
    operations = manifest.get("operations") if isinstance(manifest, dict) else None
    if isinstance(operations, list):
        manifest = {each["id"]: each["body"] for each in operations if isinstance(each, dict) and "id" in each}
    if not isinstance(manifest, dict) or not all(isinstance(each, str) and each for each in manifest.values()):
        raise ValueError("expected ids and texts")
    return manifest


def _readable_manifest(path: Path) -> Path:
    try:
        read_manifest(path)
    except (OSError, KeyError) as error:
        raise ValueError("expected a manifest") from error
    return path


RoleNames = Annotated[tuple[str, ...], NoDecode, COMMA_SEPARATED, AfterValidator(_checked_roles)]


class GraphqlSettings(HttpSettings):
    """The settings of GraphQL operations."""

    introspection: bool = setting(
        True,
        expected="true or false",
        description="Whether clients may read the schema by introspection. If false, error messages suggest no names "
        "either, and GraphiQL shows no documentation.",
    )
    trusted_documents: Annotated[Path, AfterValidator(_readable_manifest)] | None = setting(
        None,
        expected="a JSON file of documents by their ids, or a manifest of Apollo",
        description="A file of documents that clients may name by their ids: docs/interfaces.md. Read at start.",
    )
    any_document_roles: RoleNames = setting(
        (ANYBODY,),
        expected="roles such as OPERATOR,SERVICE, or anybody or nobody",
        description="The roles that may execute other documents than those of NOROSHI_TRUSTED_DOCUMENTS and of the "
        "web client. A role includes others: OPERATOR also names ADMINs. ANYBODY includes requests without a token.",
    )

    @property
    def trusted_texts(self) -> dict[str, str]:
        """The documents of the manifest by their ids."""
        return {} if self.trusted_documents is None else read_manifest(self.trusted_documents)

    def may_send_any_document(self, roles: Any) -> bool:
        """Returns whether viewers with these roles may execute documents that are not trusted."""
        if self.any_document_roles == (ANYBODY,):
            return True
        return any(role.value in self.any_document_roles for role in with_included(roles))
