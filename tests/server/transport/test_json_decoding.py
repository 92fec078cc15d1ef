"""JSON with and without lone surrogates."""

import orjson
import pytest

from server.transport.json_decoding import decode_json


@pytest.mark.parametrize("text", ['{"a": "\\ud83d"}', '["\\udc4d\\ud83d"]', '"\\uD83D!"'])
def test_lone_surrogates_are_decoded(text: str) -> None:
    assert decode_json(text) == decode_json(text.encode())
    assert ascii(decode_json(text)).lower().count("\\ud") == text.lower().count("\\ud")


def test_pair_of_surrogates_is_one_character() -> None:
    assert decode_json(b'"\\ud83d\\udc4d"') == decode_json('"\\ud83d\\udc4d"') == "👍"


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", '{"a": "\\ud83d"', '{"a": "\\ud83d", }', '["\\ud83d", NaN]', '["\\ud83d", Infinity]', "['\\ud83d']"),
        *('["\\ud83d\n"]', '["\\ud83"]', '["\\ud83d"] 1', '["\\ud83d",' + "[" * 100_000, '\ufeff"\\ud83d"'),
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_malformed_json_is_refused(text: str) -> None:
    for data in (text, text.encode()):
        with pytest.raises(orjson.JSONDecodeError):
            decode_json(data)


@pytest.mark.parametrize(
    "data", [b'"\\ud83d\xff"', b'"\xed\xa0\xbd"', '"\\ud83d"'.encode("utf-16"), b'"\\ud83d\xed\xa0\xbd"']
)
def test_bytes_that_are_no_utf8_are_refused(data: bytes) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        decode_json(data)
