"""Uploads files in the name of demo users, and waits until a worker has decoded them."""

import asyncio
from typing import Any, Protocol

from server.demo.cast import DemoUser

MAX_WAIT_S = 20.0
"""How long the fill waits for a worker to decode a picture. Without one, it leaves out what needs the picture."""

POLL_S = 0.25

CREATE_UPLOAD = "mutation CreateUpload($input: CreateUploadInput!) { createUpload(input: $input) { id url } }"
UPLOAD_STATE = "query UploadState($id: ID!) { upload(id: $id) { state } }"


class DemoApi(Protocol):
    """Runs operations and uploads in the name of demo users."""

    async def run(self, demo_user: DemoUser, document: str, **variables: object) -> dict[str, Any]:
        """Returns the data of one operation."""
        ...

    async def upload(self, demo_user: DemoUser, path: str, data: bytes) -> None:
        """Sends the bytes of an upload."""
        ...


async def upload(api: DemoApi, owner: DemoUser, file_name: str, data: bytes, purpose: str = "ATTACHMENT") -> str:
    """Uploads a file, and returns its id."""
    fields = {"fileName": file_name, "size": len(data), "purpose": purpose}
    created = (await api.run(owner, CREATE_UPLOAD, input=fields))["createUpload"]
    await api.upload(owner, created["url"], data)
    id_: str = created["id"]
    return id_


async def becomes_ready(api: DemoApi, owner: DemoUser, id_: str) -> bool:
    """Waits until an upload is READY, at most MAX_WAIT_S. Returns whether it is."""
    try:
        async with asyncio.timeout(MAX_WAIT_S):
            while True:
                state = (await api.run(owner, UPLOAD_STATE, id=id_))["upload"]["state"]
                if state == "READY":
                    return True
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        return False
