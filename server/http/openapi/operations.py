"""Descriptions of operations, from which the OpenAPI document is made. They stand beside the handlers of the routes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel
from starlette.routing import Route

JSON = "application/json"


class Tag(StrEnum):
    """Group of operations."""

    SIGN_IN = "sign-in"
    ACCOUNTS = "accounts"
    FILES = "files"
    MAIL = "mail"
    CALLS = "calls"
    PUBLISHING = "publishing"
    ADMINISTRATION = "administration"
    OPERATION = "operation"


class Scheme(StrEnum):
    """Way to authenticate a request."""

    BEARER = "bearer"
    BASIC = "basic"
    SESSION = "session"
    WEBHOOK_SIGNATURE = "webhookSignature"
    TWILIO_SIGNATURE = "twilioSignature"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an operation. Those of the path are added by themselves, if they need no description."""

    name: str
    place: Literal["query", "header", "path"]
    description: str
    value_type: type[object] = str
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a request: one of some models, or content of a media type, each line of which may be a model."""

    models: Sequence[type[BaseModel]] = ()
    media_type: str = JSON
    line: type[BaseModel] | None = None
    description: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: without a body, with a model as JSON, or with content of other media types."""

    description: str
    model: type[BaseModel] | None = None
    media_types: Sequence[str] = ()
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of a route.

    `errors` are the statuses with the body of all errors, beside 500. `security` has alternative ways to authenticate,
    each with the scopes that a service key needs.
    """

    id: str
    tag: Tag
    summary: str
    answers: Mapping[int, Answer]
    description: str = ""
    parameters: Sequence[Parameter] = ()
    body: Body | None = None
    errors: Sequence[int] = ()
    security: Mapping[Scheme, Sequence[str]] = field(default_factory=dict)


class DescribedRoute(Route):
    """A route with an operation for each of its methods."""

    def __init__(self, path: str, endpoint: Callable[..., Any], operations: Mapping[str, Operation]) -> None:
        super().__init__(path, endpoint, methods=list(operations))
        self.operations = operations
