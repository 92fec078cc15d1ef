"""Multipart forms that a twin has received."""

import re

from starlette.requests import Request


async def multipart(request: Request) -> dict[str, tuple[str, bytes]]:
    """Returns the parts of a multipart form by name, each with its content type."""
    boundary = re.search(r"boundary=([^;]+)", request.headers.get("content-type", ""))
    if boundary is None:
        return {}
    parts: dict[str, tuple[str, bytes]] = {}
    for part in (await request.body()).split(b"--" + boundary[1].encode())[1:-1]:
        head, _, body = part.strip(b"\r\n").partition(b"\r\n\r\n")
        name = re.search(rb'name="([^"]+)"', head)
        content_type = re.search(rb"(?i)content-type: *([^\r\n]+)", head)
        assert name is not None
        parts[name[1].decode()] = (content_type[1].decode() if content_type else "", body)
    return parts
