"""OpenAPI 3.1 of the routes beside GraphQL: the bodies, the descriptions of operations, and the document from them.

A handler's module describes its operations with `Operation`, and its bodies with `RequestModel` and `AnswerModel`.
"""

from server.http.openapi.bodies import AnswerModel, EmptyAnswer, Expected, RequestModel, json_object, parsed, required
from server.http.openapi.operations import Answer, Body, DescribedRoute, Operation, Parameter, Scheme, Tag
from server.http.openapi.route import openapi_routes

__all__ = [
    "Answer",
    "AnswerModel",
    "Body",
    "DescribedRoute",
    "EmptyAnswer",
    "Expected",
    "Operation",
    "Parameter",
    "RequestModel",
    "Scheme",
    "Tag",
    "json_object",
    "openapi_routes",
    "parsed",
    "required",
]
