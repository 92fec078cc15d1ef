"""Content encodings of requests and answers."""

import gzip
from collections.abc import Callable, Mapping

import brotli
import httpx2
import orjson
import pytest
import zstandard

from server.transport.compression import MAX_WINDOW_BYTES, decode
from storage.errors import BadUserInput
from tests.serving import WebProcess

ENCODERS: Mapping[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}
TYPES = "{ __schema { types { name description } } }"

each_encoding = pytest.mark.parametrize("encoding", ENCODERS)


@each_encoding
def test_body_is_decoded_up_to_its_limit(encoding: str) -> None:
    body = bytes(range(256)) * 400
    assert decode(ENCODERS[encoding](body), encoding, len(body)) == body
    assert len(decode(ENCODERS[encoding](body + b"x"), encoding, len(body))) > len(body)
    assert decode(ENCODERS[encoding](b""), encoding, 10) == b""


@each_encoding
def test_bomb_takes_little_memory(encoding: str) -> None:
    bomb = ENCODERS[encoding](b"\0" * 100_000_000)
    assert 1_000_000 < len(decode(bomb, encoding, 1_000_000)) < 2_100_000


@each_encoding
def test_other_bytes_than_one_stream_are_refused(encoding: str) -> None:
    body = ENCODERS[encoding](b'{"query": "{ __typename }"}')
    for wrong in (b"", b"{}", body[:-1], body + b"{}", body + body):
        with pytest.raises(BadUserInput, match="whole"):
            decode(wrong, encoding, 1000)


@pytest.mark.parametrize("encoding", ["deflate", "gzip, br", "", "*", "GZIP"])
def test_unknown_encoding_is_refused(encoding: str) -> None:
    with pytest.raises(BadUserInput, match="Content-Encoding: expected gzip, br, zstd or identity"):
        decode(b"", encoding, 1000)


def test_window_of_zstd_is_limited() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=MAX_WINDOW_BYTES.bit_length(), write_content_size=False)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    body = compressor.compress(b"x") + compressor.flush()
    with pytest.raises(BadUserInput, match="whole"):
        decode(body, "zstd", 1000)


@each_encoding
def test_request_and_answer_of_graphql_are_compressed(web: WebProcess, encoding: str) -> None:
    content = ENCODERS[encoding](orjson.dumps({"query": TYPES}))
    headers = {"content-type": "application/json", "content-encoding": encoding}
    with httpx2.Client(base_url=web.url, timeout=60) as http:
        plain = http.post("/graphql", json={"query": TYPES}, headers={"accept-encoding": "identity"})
        for accept in ("application/json", "application/graphql-response+json"):
            own_headers = headers | {"accept-encoding": encoding, "accept": accept}
            with http.stream("POST", "/graphql", content=content, headers=own_headers) as response:
                raw_bytes = sum(len(chunk) for chunk in response.iter_raw())
                assert response.headers["content-encoding"] == encoding
                assert {"Accept", "Accept-Encoding"} <= {each.strip() for each in response.headers["vary"].split(",")}
            assert raw_bytes < len(plain.content) / 3
        assert "content-encoding" not in plain.headers


def test_identical_queries_are_answered_in_the_encoding_of_each(web: WebProcess) -> None:
    query = {"query": "{ communities { id name description ownerIds: id } }"}
    headers = {"authorization": f"Bearer {web.token()}"}
    create = (
        "mutation ($name: String!, $text: String!) { createCommunity(input: {name: $name, description: $text}) { id } }"
    )
    with httpx2.Client(base_url=web.url, timeout=60, headers=headers) as http:
        for n in range(10):
            variables = {"name": f"Harbour {n}", "text": "x" * 200}
            assert "errors" not in http.post("/graphql", json={"query": create, "variables": variables}).json()
        answers = []
        for encoding in ("gzip", "identity", "br", "zstd", "identity", "gzip"):
            with http.stream("POST", "/graphql", json=query, headers={"accept-encoding": encoding}) as response:
                assert response.headers.get("content-encoding", "identity") == encoding
                answers.append(orjson.loads(decode(b"".join(response.iter_raw()), encoding, 1_000_000)))
    assert len(answers[0]["data"]["communities"]) >= 10
    assert all(each == answers[0] for each in answers)


@each_encoding
def test_body_that_grows_over_the_limit_is_refused(web: WebProcess, encoding: str) -> None:
    content = ENCODERS[encoding](orjson.dumps({"query": "{ __typename }", "pad": "x" * 1_000_000}))
    headers = {"content-type": "application/json", "content-encoding": encoding}
    with httpx2.Client(base_url=web.url, timeout=60) as http:
        assert http.post("/graphql", content=content, headers=headers).status_code == 413
        headers["content-encoding"] = "deflate"
        refused = http.post("/graphql", content=content, headers=headers)
    assert refused.status_code == 400
    assert refused.json()["errors"][0]["extensions"]["field"] == "Content-Encoding"
