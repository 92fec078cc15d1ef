"""Bodies of requests and answers as Pydantic models. Handlers use them, and the OpenAPI document shows them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

from resolvers.arguments import require_storable
from server.transport.json_decoding import decode_json
from storage.errors import BadUserInput

ErrorCode = Literal[
    "BAD_USER_INPUT",
    "UNAUTHENTICATED",
    "FORBIDDEN",
    "NOT_FOUND",
    "CONFLICT",
    "RATE_LIMITED",
    "INTERNAL_SERVER_ERROR",
    "UNAVAILABLE",
]


class RequestModel(BaseModel):
    """Base of the JSON objects that requests have. Unknown fields are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore", alias_generator=to_camel, hide_input_in_errors=True)


class AnswerModel(BaseModel):
    """Base of the JSON objects that answers have."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, from_attributes=True)


class EmptyAnswer(AnswerModel):
    """An object without fields."""


class ErrorExtensions(AnswerModel):
    """The code of an error, and its details. Codes may have further details."""

    model_config = ConfigDict(extra="allow")

    code: ErrorCode
    field: str | None = Field(default=None, description="Place of the wrong value, with BAD_USER_INPUT.")
    expected: str | None = Field(default=None, description="Phrase that describes valid values, with BAD_USER_INPUT.")
    scope: str | None = Field(default=None, description="Scope that the service key lacks, with FORBIDDEN.")
    retry_after_ms: int | None = Field(
        default=None, description="Milliseconds to wait before the next try, with RATE_LIMITED and UNAVAILABLE."
    )
    request_id: str | None = Field(default=None, description="Id of the error in the log, with INTERNAL_SERVER_ERROR.")


class Error(AnswerModel):
    """An error. The message may change, the code does not."""

    message: str
    extensions: ErrorExtensions


class ErrorAnswer(AnswerModel):
    """The body of every error of the HTTP routes, in the shape of GraphQL's errors. It has one error."""

    errors: list[Error]


@dataclass(frozen=True, slots=True)
class Expected:
    """Annotation of a field: a short phrase that describes valid values, for the error about a wrong one."""

    phrase: str


Model = TypeVar("Model", bound=RequestModel)
Value = TypeVar("Value")


def json_object(data: bytes) -> dict[str, object]:
    """Returns the JSON object of a body, whose texts can be stored. Raises: BadUserInput."""
    try:
        value = decode_json(data)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise BadUserInput("body", "a JSON object")
    require_storable(value)
    return value


def parsed(model: type[Model], body: dict[str, object]) -> Model:
    """Returns the object of a body as a model. Raises: BadUserInput, which names the first field that is wrong."""
    try:
        return model.model_validate(body)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        name = str(fault["loc"][0])
        raise BadUserInput(name, next(_phrases(model, name), fault["msg"])) from None


def required(value: Value | None, field: str, expected: str) -> Value:
    """Returns the value of a field that only some requests need. Raises: BadUserInput if there is none."""
    if value is None:
        raise BadUserInput(field, expected)
    return value


def _phrases(model: type[BaseModel], alias: str) -> Iterator[str]:
    """Yields the phrases that describe valid values of a field."""
    fields = (field for field in model.model_fields.values() if field.alias == alias)
    return (each.phrase for field in fields for each in _annotations(field) if isinstance(each, Expected))


def _annotations(field: FieldInfo) -> Iterator[object]:
    """Yields the annotations of a field, and of the types of an optional one."""
    yield from field.metadata
    for option in get_args(field.annotation):
        yield from getattr(option, "__metadata__", ())
