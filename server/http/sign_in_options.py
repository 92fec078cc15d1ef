"""GET /sign-in/options: how people may sign in here, for the sign-in screen."""

from starlette.requests import Request
from starlette.responses import Response

from server.auth.passkeys.relying_party import relying_party
from server.http.json_answers import json_answer
from server.http.oidc import SIGN_IN
from server.http.openapi import Answer, AnswerModel, DescribedRoute, Operation, Tag
from server.settings import Settings


class SignInOption(AnswerModel):
    """A way to sign in: OIDC, whose `url` the browser opens, or PASSWORD, PASSKEY or REGISTRATION, to which it posts.

    A client ignores methods that it does not know.
    """

    method: str
    name: str
    url: str


class SignInOptions(AnswerModel):
    """The ways to sign in here."""

    methods: list[SignInOption]


OPTIONS = Operation(
    id="listSignInMethods",
    tag=Tag.SIGN_IN,
    summary="List how people may sign in",
    answers={200: Answer("The ways to sign in.", SignInOptions)},
)


def sign_in_options_route(settings: Settings) -> DescribedRoute:
    """Returns the route of the list."""
    methods: list[SignInOption] = []
    if settings.oidc_issuer:
        methods.append(SignInOption(method="OIDC", name=settings.oidc_display_name, url=SIGN_IN))
    if settings.has_local_accounts:
        methods.append(SignInOption(method="PASSWORD", name="", url="/sign-in/password"))
    if settings.has_local_accounts and relying_party(settings.base_url):
        methods.append(SignInOption(method="PASSKEY", name="", url="/sign-in/passkey"))
    if settings.has_local_accounts and settings.open_registration:
        methods.append(SignInOption(method="REGISTRATION", name="", url="/accounts"))

    async def options(request: Request) -> Response:
        return json_answer(SignInOptions(methods=methods))

    return DescribedRoute("/sign-in/options", options, {"GET": OPTIONS})
