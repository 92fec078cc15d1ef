"""Object stores of providers, as servers on this machine: moto for S3, and Azurite for Azure.

Both are optional programs of the tests. `make buckets` installs moto, and `npm install --global azurite` Azurite.
"""

import base64
import email.utils
import hashlib
import hmac
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from tests.product import eventually

NAME = "noroshi"
KEY = base64.b64encode(b"a key of the tests, for one account only").decode()
MOTO = Path(__file__).parents[1] / ".venv" / "buckets" / "bin" / "moto_server"


@dataclass(frozen=True)
class BucketServer:
    """A server with one bucket or container."""

    address: str
    """The value of NOROSHI_FILES."""

    variables: dict[str, str]
    """The variables of the provider."""

    create: Callable[[], object]
    remove: Callable[[], object]
    """Removes the bucket with everything in it."""

    keys: Callable[[], list[str]]
    """Returns the keys of all objects."""


@contextmanager
def s3_server() -> Iterator[BucketServer]:
    """Serves S3 from moto."""
    if not MOTO.exists():
        pytest.skip("needs moto: run `make buckets`")
    with _program([str(MOTO), "--port", "0"], r"Running on (http://[\d.:]+)") as endpoint:
        bucket = f"{endpoint}/{NAME}"

        def keys() -> list[str]:
            return re.findall("<Key>(.*?)</Key>", httpx2.get(bucket, params={"list-type": "2"}, timeout=30).text)

        variables = {
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT": endpoint,
        }
        yield BucketServer(
            f"s3://{NAME}/some/path",
            variables,
            lambda: httpx2.put(bucket, timeout=30).raise_for_status(),
            lambda: httpx2.post(f"{endpoint}/moto-api/reset", timeout=30).raise_for_status(),
            keys,
        )


@contextmanager
def azure_server() -> Iterator[BucketServer]:
    """Serves Azure's blobs from Azurite."""
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip("needs azurite-blob: run `npm install --global azurite`")
    options = ["--blobPort", "0", "--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck"]
    accounts = {"AZURITE_ACCOUNTS": f"noroshi:{KEY}"}
    with _program([program, *options], r"listens on (http://[\d.:]+)", **accounts) as address:
        endpoint = f"{address}/noroshi"
        variables = {
            "AZURE_STORAGE_ACCOUNT_NAME": "noroshi",
            "AZURE_STORAGE_ACCOUNT_KEY": KEY,
            "AZURE_STORAGE_ENDPOINT": endpoint,
        }
        yield BucketServer(
            f"az://{NAME}/some/path",
            variables,
            lambda: _azure(endpoint, "PUT"),
            lambda: _azure(endpoint, "DELETE"),
            lambda: re.findall("<Name>(.*?)</Name>", _azure(endpoint, "GET", comp="list")),
        )


@contextmanager
def _program(command: list[str], ready: str, **variables: str) -> Iterator[str]:
    """Runs a server, and yields the address that the line matching `ready` names."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=os.environ | variables)
        try:

            def address() -> str | None:
                output.seek(0)
                found = re.search(ready, output.read().decode())
                return None if found is None else found[1]

            assert eventually(lambda: address() is not None), address()
            yield str(address())
        finally:
            process.terminate()
            process.wait()


def _azure(endpoint: str, method: str, **parameters: str) -> str:
    """Sends a request about the container, with a shared key. Returns the body of the answer."""
    parameters |= {"restype": "container"}
    headers = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    canonical = [
        method,
        *[""] * 11,
        *(f"{name}:{value}" for name, value in headers.items()),
        f"/noroshi/noroshi/{NAME}",
        *(f"{name}:{value}" for name, value in sorted(parameters.items())),
    ]
    digest = hmac.digest(base64.b64decode(KEY), "\n".join(canonical).encode(), hashlib.sha256)
    headers["Authorization"] = f"SharedKey noroshi:{base64.b64encode(digest).decode()}"
    response = httpx2.request(method, f"{endpoint}/{NAME}", params=parameters, headers=headers, timeout=30)
    response.raise_for_status()
    return response.text
