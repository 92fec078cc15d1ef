"""A mongod that requires TLS and passwords, with the users that docs/operations.md describes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pymongo import AsyncMongoClient

from server.embedded import Mongod, find_mongod
from tests.certificates import create_tls_contexts

HOST = "127.0.0.1"
PASSWORD = "p@ss/word: 1"
ADMIN = "root"


class SecuredMongod(Mongod):
    """A mongod that accepts only TLS connections of users with a password (SCRAM), and its own internal connections."""

    certificate: Path

    @property
    def uri(self) -> str:
        return self.uri_for(ADMIN)

    def uri_for(self, user: str, password: str = PASSWORD, certificate: Path | None = None) -> str:
        """Returns the address with a user, and with the certificate that the client trusts."""
        trusted = quote(str(certificate or self.certificate), safe="")
        return f"mongodb://{user}:{quote(password, safe='')}@{self.address}/?tls=true&tlsCAFile={trusted}"


@asynccontextmanager
async def secured_mongod(folder: Path, roles: dict[str, list[Any]]) -> AsyncIterator[SecuredMongod]:
    """Runs a replica set of one member. `roles` holds the roles of each user."""
    create_tls_contexts(HOST, folder)
    key_file = folder / "members.key"
    key_file.write_text("a key of the members of the set")
    key_file.chmod(0o600)
    await _create_users(folder / "mongodb", {ADMIN: ["root"]} | roles)
    options = (
        "--keyFile",
        str(key_file),
        "--tlsMode",
        "requireTLS",
        "--tlsCertificateKeyFile",
        str(folder / "key.pem"),
    )
    trust = ("--tlsCAFile", str(folder / "certificate.pem"), "--tlsAllowConnectionsWithoutCertificates")
    server = SecuredMongod(folder / "mongodb", find_mongod(), options=(*options, *trust))
    server.certificate = folder / "certificate.pem"
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def _create_users(folder: Path, roles: dict[str, list[Any]]) -> None:
    """Creates the users while the server still requires no password."""
    server = Mongod(folder, find_mongod())
    await server.start()
    async with AsyncMongoClient[dict[str, Any]](server.uri) as client:
        for user, user_roles in roles.items():
            await client.admin.command("createUser", user, pwd=PASSWORD, roles=user_roles)
    await server.stop()
