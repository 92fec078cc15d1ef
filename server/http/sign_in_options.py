"""GET /sign-in/options: how people may sign in here, for the sign-in screen."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from server.auth.passkeys.relying_party import relying_party
from server.http.json_answers import json_answer
from server.http.oidc import SIGN_IN
from server.settings import Settings


def sign_in_options_route(settings: Settings) -> Route:
    """Returns the route of the list. A client ignores methods that it does not know."""
    methods: list[dict[str, str]] = []
    if settings.oidc_issuer:
        methods.append({"method": "OIDC", "name": settings.oidc_display_name, "url": SIGN_IN})
    if settings.has_local_accounts:
        methods.append({"method": "PASSWORD", "name": "", "url": "/sign-in/password"})
    if settings.has_local_accounts and relying_party(settings.base_url):
        methods.append({"method": "PASSKEY", "name": "", "url": "/sign-in/passkey"})
    if settings.has_local_accounts and settings.open_registration:
        methods.append({"method": "REGISTRATION", "name": "", "url": "/accounts"})

    async def options(request: Request) -> Response:
        return json_answer({"methods": methods})

    return Route("/sign-in/options", options)
