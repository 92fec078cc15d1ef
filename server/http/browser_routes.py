"""Routes that the pages of this server call to sign people in and out: JSON, never cached.

Each request needs the header Noroshi-Client. If the request has an Origin, it must be allowed. Therefore no page of
another site can sign its visitors in or out here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from server.auth.credentials import CLIENT_HEADER, RequestCredentials
from server.http.json_answers import error_answer
from server.http.openapi import DescribedRoute, Operation, Parameter, json_object
from server.transport.bodies import read_body
from storage.errors import Unavailable

DEADLINE_S = 10.0
"""How long a request may take, from the first byte of its body to its answer."""

MAX_BODY_BYTES = 16_384

CLIENT_PARAMETER = Parameter(
    CLIENT_HEADER, "header", "Any value. Pages of other origins can't send this header.", is_required=True
)
ERRORS = (400, 403, 503)
"""Statuses of errors that each of these routes may answer."""

BrowserHandler = Callable[[Request], Awaitable[Response]]


def browser_route(
    path: str,
    operation: Operation,
    credentials: RequestCredentials,
    handle: BrowserHandler,
    deadline_s: float = DEADLINE_S,
) -> DescribedRoute:
    """Returns a route of POST whose handler may raise a DomainError, which is answered in the shape of all errors.

    After the deadline, the handler is cancelled and the answer is UNAVAILABLE.
    """
    parameters, errors = (CLIENT_PARAMETER, *operation.parameters), (*ERRORS, *operation.errors)

    async def endpoint(request: Request) -> Response:
        try:
            credentials.check_browser(request.headers)
            return await _before_deadline(handle(request), deadline_s)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:
            return error_answer(error)

    return DescribedRoute(path, endpoint, {"POST": replace(operation, parameters=parameters, errors=errors)})


async def _before_deadline(answering: Awaitable[Response], deadline_s: float) -> Response:
    """Returns the answer. Raises: Unavailable after `deadline_s` seconds."""
    try:
        async with asyncio.timeout(deadline_s) as timeout:
            return await answering
    except TimeoutError:
        if not timeout.expired():
            raise
        message = f"The request was stopped after {deadline_s:g} s. Its change may have taken effect. Try again."
        raise Unavailable(message) from None


async def json_body(request: Request) -> dict[str, object]:
    """Returns the JSON object in the body of a request. Raises: BadUserInput."""
    return json_object(await read_body(request, MAX_BODY_BYTES))
