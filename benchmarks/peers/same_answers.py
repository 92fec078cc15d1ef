"""Proves that the servers of a comparison answer the same requests with the same bytes."""

import asyncio
from collections.abc import Mapping, Sequence

from benchmarks.servers import DatabaseServers, web_process
from benchmarks.timeline_data import TimelineData
from benchmarks.timeline_load import EXPECTED_START, HEAD_END, OK, content_length

RANDOM_PAGES = 40
EXCERPT_BYTES = 60


class DifferentAnswer(Exception):
    """A server's answer differs from the first server's, or is no page."""


async def check_same_answers(
    programs: Mapping[str, Sequence[str]], servers: DatabaseServers, data: TimelineData
) -> None:
    """Sends a sample of requests to each program, one after another.

    Raises: DifferentAnswer with the first difference from the first program's answers.
    """
    requests = data.sample_requests(RANDOM_PAGES)
    expected: list[bytes] = []
    for name, program in programs.items():
        with web_process(servers, program) as web:
            bodies = [await page_body(name, web.port, request) for request in requests]
        expected = expected or bodies
        for request, expected_body, body in zip(requests, expected, bodies, strict=True):
            check_same_body(name, request, expected_body, body)


async def page_body(name: str, port: int, request: str) -> bytes:
    """Returns the body of the answer to a request. Raises: DifferentAnswer if the answer is no page."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.encode())
    head = await reader.readuntil(HEAD_END)
    body = await reader.readexactly(content_length(head.lower()))
    writer.close()
    await writer.wait_closed()
    if not (head.startswith(OK) and body.startswith(EXPECTED_START)):
        raise DifferentAnswer(f"{name} answers {_last_line(request)}\nwithout a page: {body[:1000].decode()}")
    return body


def check_same_body(name: str, request: str, expected: bytes, body: bytes) -> None:
    """Raises: DifferentAnswer with the bytes around the first difference."""
    if body == expected:
        return
    pairs = zip(expected, body, strict=False)
    at = next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(expected), len(body)))
    near = slice(max(at - EXCERPT_BYTES, 0), at + EXCERPT_BYTES)
    raise DifferentAnswer(
        f"{name} answers {_last_line(request)}\nwith other bytes than expected, first at byte {at}.\n"
        f"Expected: {expected[near].decode(errors='replace')}\nReceived: {body[near].decode(errors='replace')}"
    )


def _last_line(request: str) -> str:
    return request.rpartition("\r\n")[2]
