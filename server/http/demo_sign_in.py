"""Sign-in as a demo user. It is enabled only with --demo on a loopback host, for clients on this machine.

GET /demo/users lists the demo users, or none where sign-in is disabled. POST /demo/sign-in returns a token.
"""

from __future__ import annotations

from collections.abc import Sequence
from json import JSONDecodeError
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from server.auth.sign_in import sign_user_token
from server.http.hosts import host_name, is_loopback
from server.http.json_answers import error_answer, json_answer
from server.settings import Settings
from storage.errors import BadUserInput, Forbidden, NotFound

FORWARDING_HEADERS = ("x-forwarded-for", "x-forwarded-host", "x-real-ip", "forwarded", "via")

if TYPE_CHECKING:
    from server.demo import DemoUser


def demo_sign_in_routes(settings: Settings) -> list[BaseRoute]:
    """Returns the route of the list, and the route of the sign-in where it is enabled."""
    if not settings.demo or not is_loopback(settings.host) or settings.auth_jwks_url:
        return [_users_route(())]
    from server.demo import DEMO_USERS

    async def sign_in(request: Request) -> Response:
        if not _is_from_this_machine(request):
            return error_answer(Forbidden("Demo users sign in on the machine of this server only."), 404)
        try:
            user_id = (await request.json())["user"]
        except (JSONDecodeError, UnicodeDecodeError, KeyError, TypeError):
            return error_answer(BadUserInput("user", "the id of a demo user"))
        demo_user = next((user for user in DEMO_USERS if user.id == user_id), None)
        if demo_user is None:
            return error_answer(NotFound("demo user", str(user_id), users=[user.id for user in DEMO_USERS]))
        return json_answer({"token": sign_user_token(settings, demo_user)})

    return [_users_route(DEMO_USERS), Route("/demo/sign-in", sign_in, methods=["POST"])]


def _users_route(demo_users: Sequence[DemoUser]) -> Route:
    rows = [
        {
            "id": user.id,
            "handle": user.handle,
            "name": user.name,
            "organizationId": user.organization_id,
            "roles": list(user.roles),
        }
        for user in demo_users
    ]

    async def users(request: Request) -> Response:
        return json_answer({"users": rows if _is_from_this_machine(request) else []})

    return Route("/demo/users", users)


def _is_from_this_machine(request: Request) -> bool:
    """Returns whether the client's address and the header Host are local, and no proxy has forwarded the request.

    A proxy may pass on addresses that its client has made up.
    """
    if any(name in request.headers for name in FORWARDING_HEADERS):
        return False
    host = host_name(request.headers.get("host", "").encode())
    return is_loopback(host) and request.client is not None and is_loopback(request.client.host)
