"""The OpenAPI document of the described routes, made of their operations and models by openapi-pydantic."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson
from openapi_pydantic import OpenAPI
from openapi_pydantic.util import PydanticSchema, construct_open_api_with_schema_class
from pydantic import BaseModel, TypeAdapter
from starlette.routing import BaseRoute

from server.auth.credentials import SESSION_COOKIE
from server.http.openapi.bodies import ErrorAnswer
from server.http.openapi.operations import JSON, Answer, Body, DescribedRoute, Operation, Parameter, Scheme, Tag

DESCRIPTION = """All HTTP endpoints of Noroshi beside GraphQL, which is at `/graphql`.

Errors have one shape, `ErrorAnswer`, with a code that does not change. Endpoints that a browser opens as pages or
pictures answer texts, pages or no body instead."""

ERRORS = {
    400: "`BAD_USER_INPUT`: the request is wrong; `field` and `expected` say where and how.",
    401: "`UNAUTHENTICATED`: the credential is missing, wrong or expired.",
    403: "`FORBIDDEN`: the request is not allowed to this user, key or origin.",
    404: "`NOT_FOUND`: the object does not exist, or not for this user.",
    409: "`CONFLICT`: the state of the object does not allow the change.",
    412: "`BAD_USER_INPUT`: the version of a protocol is not supported.",
    413: "`BAD_USER_INPUT`: the body is too large.",
    415: "`BAD_USER_INPUT`: the content type is not supported.",
    429: "`RATE_LIMITED`: too many requests; try again after `Retry-After`.",
    500: "`INTERNAL_SERVER_ERROR`: an unexpected error; the log has it under `requestId`.",
    503: "`UNAVAILABLE`: a server that is needed does not answer; try again after `Retry-After`.",
}
RETRY_STATUSES = {429, 503}

TAGS = {
    Tag.SIGN_IN: "Sessions of browsers: sign-in by password, passkey or OpenID Connect, and sign-out.",
    Tag.ACCOUNTS: "Local accounts: invitations, registration, passwords and passkeys.",
    Tag.FILES: "Bytes of uploads, files, pictures and archives.",
    Tag.MAIL: "Delivery events of mail, and the end of digests.",
    Tag.CALLS: "Reports of telephony providers.",
    Tag.PUBLISHING: "The way back from social networks.",
    Tag.ADMINISTRATION: "The audit log.",
    Tag.OPERATION: "Health and metrics of the server.",
}

SCHEMES: Mapping[Scheme, Mapping[str, str]] = {
    Scheme.BEARER: {
        "type": "http",
        "scheme": "bearer",
        "description": "A token (JWT), or a service key `nrk_…`, which needs the scopes that the operation lists.",
    },
    Scheme.BASIC: {
        "type": "http",
        "scheme": "basic",
        "description": "Any user name, and a service key `nrk_…` as the password, which needs the scopes that the "
        "operation lists. Also in the address, before the host: `noroshi:nrk_…@`.",
    },
    Scheme.SESSION: {
        "type": "apiKey",
        "in": "cookie",
        "name": SESSION_COOKIE,
        "description": "The session of a browser. Requests also need the header `Noroshi-Client` with any value, "
        "except downloads.",
    },
    Scheme.WEBHOOK_SIGNATURE: {
        "type": "apiKey",
        "in": "header",
        "name": "webhook-signature",
        "description": "Signature of Standard Webhooks: `v1,` and the base64 of HMAC-SHA256 of `id.timestamp.body`.",
    },
    Scheme.TWILIO_SIGNATURE: {
        "type": "apiKey",
        "in": "header",
        "name": "X-Twilio-Signature",
        "description": "Signature of Twilio with the auth token of the account.",
    },
}


def openapi_document(routes: Iterable[BaseRoute], version: str) -> bytes:
    """Returns the document of the described routes as JSON."""
    described = [route for route in routes if isinstance(route, DescribedRoute)]
    used = {scheme for operation in _operations(described) for scheme in operation.security}
    document = OpenAPI.model_validate(
        {
            "openapi": "3.1.1",
            "info": {"title": "Noroshi", "version": version, "description": DESCRIPTION},
            "servers": [{"url": "./", "description": "This server"}],
            "tags": [{"name": tag.value, "description": text} for tag, text in TAGS.items()],
            "paths": {route.path_format: _path_item(route) for route in described},
            "components": {"securitySchemes": {name.value: SCHEMES[name] for name in Scheme if name in used}},
        }
    )
    complete = construct_open_api_with_schema_class(document, [ErrorAnswer, *_line_models(described)])
    content = complete.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)
    return orjson.dumps(content)


def _operations(routes: Iterable[DescribedRoute]) -> Iterator[Operation]:
    return (operation for route in routes for operation in route.operations.values())


def _line_models(routes: Iterable[DescribedRoute]) -> list[type[BaseModel]]:
    """Returns the models of lines, to which the bodies of requests refer."""
    bodies = (operation.body for operation in _operations(routes))
    return [body.line for body in bodies if body is not None and body.line is not None]


def _path_item(route: DescribedRoute) -> dict[str, object]:
    return {method.lower(): _operation(route, operation) for method, operation in route.operations.items()}


def _operation(route: DescribedRoute, operation: Operation) -> dict[str, object]:
    errors = sorted({*operation.errors, 500}) if operation.errors else []
    members = {
        "operationId": operation.id,
        "tags": [operation.tag.value],
        "summary": operation.summary,
        "description": operation.description,
        "parameters": [_parameter(each) for each in _parameters(route, operation)],
        "requestBody": operation.body and _request_body(operation.body),
        "responses": {str(status): _answer(answer) for status, answer in operation.answers.items()}
        | {str(status): _error(status) for status in errors if status not in operation.answers},
        "security": [{scheme.value: list(scopes)} for scheme, scopes in operation.security.items()],
    }
    return {name: value for name, value in members.items() if value}


def _parameters(route: DescribedRoute, operation: Operation) -> Iterator[Parameter]:
    """Yields the parameters of an operation, and those of the path that it does not describe."""
    described = {each.name for each in operation.parameters}
    for name in route.param_convertors:
        if name not in described:
            yield Parameter(name, "path", "", is_required=True)
    yield from operation.parameters


def _parameter(parameter: Parameter) -> dict[str, object]:
    description = {"description": parameter.description} if parameter.description else {}
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.is_required,
        "schema": TypeAdapter(parameter.value_type).json_schema(),
        **description,
    }


def _request_body(body: Body) -> dict[str, object]:
    description = {"description": body.description} if body.description else {}
    return {"required": True, "content": {body.media_type: {"schema": _body_schema(body)}}, **description}


def _body_schema(body: Body) -> object:
    if len(body.models) == 1:
        return _model_schema(body.models[0])
    if body.models:
        return {"anyOf": [_model_schema(model) for model in body.models]}
    if body.line is not None:
        line = {"$ref": f"#/components/schemas/{body.line.__name__}"}
        return {"type": "string", "format": "binary", "contentMediaType": body.media_type, "contentSchema": line}
    return _content_schema(body.media_type)


def _model_schema(model: type[BaseModel]) -> PydanticSchema[BaseModel]:
    """Returns a reference to a model, whose schema becomes a component."""
    return PydanticSchema.model_validate({"schema_class": model})


def _content_schema(media_type: str) -> dict[str, Any]:
    if media_type == "application/x-www-form-urlencoded":
        return {"type": "object", "additionalProperties": {"type": "string"}}
    return {"type": "string"} if media_type.startswith("text/") else {"type": "string", "format": "binary"}


def _answer(answer: Answer) -> dict[str, object]:
    content: dict[str, object] = {each: {"schema": _content_schema(each)} for each in answer.media_types}
    if answer.model is not None:
        content[JSON] = {"schema": _model_schema(answer.model)}
    headers = {name: _header(description) for name, description in answer.headers.items()}
    members = {"description": answer.description, "content": content, "headers": headers}
    return {name: value for name, value in members.items() if value}


def _error(status: int) -> dict[str, object]:
    retry = {"Retry-After": "Seconds to wait before the next try."} if status in RETRY_STATUSES else {}
    return _answer(Answer(ERRORS[status], ErrorAnswer, headers=retry))


def _header(description: str) -> dict[str, object]:
    return {"description": description, "schema": {"type": "string"}}
