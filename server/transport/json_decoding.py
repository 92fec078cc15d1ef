"""Decodes JSON from clients."""

import json
from contextlib import suppress
from typing import Any

import orjson


def decode_json(data: str | bytes) -> Any:
    """Returns the value of a JSON text. Its strings may have lone surrogates. Raises: orjson.JSONDecodeError.

    orjson refuses a whole text for one lone surrogate, such as half of an emoji. With the value, callers can refuse
    only the string that has it, with its name (`resolvers.arguments.require_storable`).
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        # Lone surrogates in JSON are escapes such as \ud83d, since they have no UTF-8.
        with suppress(ValueError, RecursionError):
            return json.loads(data if isinstance(data, str) else data.decode(), parse_constant=_refuse_constant)
        raise


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON.")
