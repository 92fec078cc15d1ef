"""POST /demo/sign-in: a token for a demo user, with one click. Only with --demo, and only on a loopback host."""

from ipaddress import ip_address
from json import JSONDecodeError

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from server.settings import Settings
from server.sign_in import sign_for


def demo_sign_in_routes(settings: Settings) -> list[BaseRoute]:
    """The route where it may be, else none."""
    if not settings.demo or not _is_loopback(settings.host) or settings.auth_jwks_url:
        return []
    from server.demo import DEMO_USERS

    async def sign_in(request: Request) -> Response:
        try:
            wanted = (await request.json())["user"]
        except (JSONDecodeError, UnicodeDecodeError, KeyError, TypeError):
            return _answer({"error": 'expected {"user": the id of a demo user}'}, 400)
        found = next((user for user in DEMO_USERS if user.id == wanted), None)
        if found is None:
            return _answer({"error": "no such demo user", "users": [user.id for user in DEMO_USERS]}, 404)
        return _answer({"token": sign_for(settings, found)}, 200)

    return [Route("/demo/sign-in", sign_in, methods=["POST"])]


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _answer(body: dict[str, object], status: int) -> Response:
    return Response(orjson.dumps(body), status, {"Cache-Control": "no-store"}, "application/json")
