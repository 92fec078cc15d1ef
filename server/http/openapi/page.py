"""The page that shows the OpenAPI document to people: HTML without scripts, which loads nothing from any server."""

import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any

STYLE = """:root { color-scheme: light dark } body { font-family: sans-serif; line-height: 1.5; margin: 2em 1em }
main { max-width: 60em; margin: auto } section { margin: 2.5em 0 } h3 { margin-bottom: 0 }
table { border-collapse: collapse; width: 100%; margin: 0.5em 0 } th { text-align: left }
th, td { border-bottom: 1px solid #8886; padding: 0.25em 1em 0.25em 0; vertical-align: top }
code { font-size: 1.05em; overflow-wrap: anywhere } .method { display: inline-block; min-width: 4.5em }
nav ul { list-style: none; padding: 0 } caption { text-align: left; font-weight: bold }"""

_CODE = re.compile(r"`([^`]+)`")
_REFERENCE = "#/components/schemas/"

Object = Mapping[str, Any]


def openapi_page(document: Object) -> str:
    """Returns the page of a document."""
    info, operations = document["info"], list(_operations(document))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(info['title'])} HTTP API</title><style>{STYLE}</style></head><body><main>"
        f"<h1>{escape(info['title'])} HTTP API {escape(info['version'])}</h1>{_paragraphs(info['description'])}"
        '<p>Programs read <a href="openapi.json">openapi.json</a>.</p>'
        f"<nav>{''.join(_contents(document, operations))}</nav>"
        f"{''.join(_operation(*each) for each in operations)}"
        f"<h2>Credentials</h2>{_table(('name', 'description'), _credentials(document))}"
        f"<h2>Bodies</h2>{''.join(_model(*each) for each in document['components']['schemas'].items())}"
        "</main></body></html>\n"
    )


def _operations(document: Object) -> Iterator[tuple[str, str, Object]]:
    """Yields the method, the path and the description of each operation, in the order of their tags."""
    tags = [tag["name"] for tag in document["tags"]]
    operations = [
        (method.upper(), path, operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
    ]
    yield from sorted(operations, key=lambda each: tags.index(each[2]["tags"][0]))


def _contents(document: Object, operations: Iterable[tuple[str, str, Object]]) -> Iterator[str]:
    """Yields a list of links to the operations of each tag."""
    by_tag: dict[str, list[str]] = {}
    for method, path, operation in operations:
        link = f'<a href="#{operation["operationId"]}">{_name(method, path)}</a> {escape(operation["summary"])}'
        by_tag.setdefault(operation["tags"][0], []).append(f"<li>{link}</li>")
    for tag in document["tags"]:
        if links := by_tag.get(tag["name"]):
            yield f"<h2>{escape(tag['description'])}</h2><ul>{''.join(links)}</ul>"


def _name(method: str, path: str) -> str:
    return f'<code><span class="method">{method}</span> {escape(path)}</code>'


def _operation(method: str, path: str, operation: Object) -> str:
    parameters = (
        (f"<code>{escape(each['name'])}</code>", each["in"], _type(each["schema"]), _need(each), _text(each))
        for each in operation.get("parameters", ())
    )
    body = operation.get("requestBody", {})
    contents = ((f"<code>{escape(name)}</code>", _type(each["schema"])) for name, each in _content(body))
    answers = ((status, _text(each), _types(each)) for status, each in operation["responses"].items())
    return (
        f'<section id="{operation["operationId"]}"><h3>{_name(method, path)}</h3>'
        f"<p>{escape(operation['summary'])}. {_text(operation)}</p>{_security(operation)}"
        f"{_table(('parameter', 'in', 'type', '', 'description'), parameters)}"
        f"{_table(('body', _text(body)), contents)}{_table(('status', 'answer', 'body'), answers)}</section>"
    )


def _security(operation: Object) -> str:
    ways = [
        f"<code>{name}</code>" + (f" with {', '.join(map(escape, scopes))}" if scopes else "")
        for way in operation.get("security", ())
        for name, scopes in way.items()
    ]
    return f"<p>Credential: {' or '.join(ways)}.</p>" if ways else ""


def _credentials(document: Object) -> Iterator[tuple[str, ...]]:
    for name, scheme in document["components"]["securitySchemes"].items():
        yield f"<code>{escape(name)}</code>", _text(scheme)


def _model(name: str, schema: Object) -> str:
    needed = schema.get("required", ())
    fields = (
        (f"<code>{escape(field)}</code>", _type(each), "required" if field in needed else "", _text(each))
        for field, each in schema.get("properties", {}).items()
    )
    values = f"<p>{_type(schema)}</p>" if "enum" in schema else ""
    rows = _table(("field", "type", "", "description"), fields)
    return f'<section id="{escape(name)}"><h3>{escape(name)}</h3><p>{_text(schema)}</p>{values}{rows}</section>'


def _type(schema: Object) -> str:
    """Returns the type of a value, with links to the bodies that it refers to."""
    if "$ref" in schema:
        name = escape(schema["$ref"].removeprefix(_REFERENCE))
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return " or ".join(f"<code>{escape(str(each))}</code>" for each in schema.get("enum", [schema.get("const")]))
    if "items" in schema:
        return f"list of {_type(schema['items'])}"
    lines = f", each line a {_type(schema['contentSchema'])}" if "contentSchema" in schema else ""
    return escape(str(schema.get("format", schema.get("type", "any value")))) + lines


def _content(holder: Object) -> Iterable[tuple[str, Object]]:
    content: dict[str, Object] = holder.get("content", {})
    return content.items()


def _types(answer: Object) -> str:
    return ", ".join(_type(each["schema"]) if "json" in name else escape(name) for name, each in _content(answer))


def _need(parameter: Object) -> str:
    return "required" if parameter["required"] else ""


def _text(holder: Object) -> str:
    """Returns the description of an object, with its code in HTML."""
    return _CODE.sub(r"<code>\1</code>", escape(holder.get("description", ""), quote=False))


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{_text({'description': each})}</p>" for each in text.split("\n\n"))


def _table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Returns a table, or nothing without rows."""
    cells = ["".join(f"<td>{cell}</td>" for cell in row) for row in rows]
    head = "".join(f"<th>{heading}</th>" for heading in headings)
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>" if cells else ""
