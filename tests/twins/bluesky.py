"""Bluesky: sessions by app password, blobs, and records under keys that are TIDs."""

import hashlib
import re
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.twins.twin import Twin, bearer

TID = re.compile(r"[234567abcdefghij][234567abcdefghijklmnopqrstuvwxyz]{12}")
DID = "did:plc:twin"


def xrpc_error(status: int, name: str, message: str) -> Response:
    """An error as XRPC words it."""
    return JSONResponse({"error": name, "message": message}, status)


class BlueskyTwin(Twin):
    """One account: ann.example, password app-pass."""

    def __init__(self, lose_rate: float = 0.0, seed: int = 0) -> None:
        super().__init__(lose_rate, seed)
        self.records: dict[str, Any] = {}
        self.blobs: set[str] = set()
        self.jwts = 0

    def routes(self) -> list[Route]:
        return [
            Route("/xrpc/com.atproto.server.createSession", self.session, methods=["POST"]),
            Route("/xrpc/com.atproto.repo.uploadBlob", self.blob, methods=["POST"]),
            Route("/xrpc/com.atproto.repo.putRecord", self.put, methods=["POST"]),
        ]

    async def session(self, request: Request) -> Response:
        body = await request.json()
        if (body["identifier"], body["password"]) != ("ann.example", "app-pass"):
            return xrpc_error(401, "AuthenticationRequired", "Invalid identifier or password")
        self.jwts += 1
        return JSONResponse({"accessJwt": f"jwt{self.jwts}", "refreshJwt": "r", "did": DID, "handle": "ann.example"})

    async def blob(self, request: Request) -> Response:
        content = await request.body()
        if len(content) > 1_000_000:
            return xrpc_error(400, "BlobTooLarge", "This file is too large")
        link = hashlib.sha256(content).hexdigest()
        self.blobs.add(link)
        kind = request.headers["content-type"]
        return JSONResponse({"blob": {"$type": "blob", "ref": {"$link": link}, "mimeType": kind, "size": len(content)}})

    async def put(self, request: Request) -> Response:
        if bearer(request) != f"jwt{self.jwts}":
            return xrpc_error(400, "ExpiredToken", "Token has expired")
        body = await request.json()
        return await self.faulty(lambda: self._put(body))

    async def _put(self, body: dict[str, Any]) -> Response:
        record, key = body["record"], body["rkey"]
        if body["repo"] != DID or not TID.fullmatch(key) or len(record["text"]) > 300:
            return xrpc_error(400, "InvalidRequest", "Invalid record")
        images = record.get("embed", {}).get("images", ())
        if any(each["image"]["ref"]["$link"] not in self.blobs for each in images):
            return xrpc_error(400, "InvalidRequest", "Could not find blob")
        content = orjson.dumps(record, option=orjson.OPT_SORT_KEYS)
        if self.records.get(key) != content:
            # Other content under a known key would be an edit, which nobody asked for: it counts as an effect.
            self.records[key] = content
            self.bodies.append(record)
            self.publish(DID, record["text"], key)
        return JSONResponse({"uri": f"at://{DID}/app.bsky.feed.post/{key}", "cid": hashlib.sha256(content).hexdigest()})
