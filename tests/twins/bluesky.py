"""Bluesky: sessions by app password, blobs, video processing, and records under TID keys."""

import hashlib
import re
import time
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.twins.twin import NetworkTwin, bearer_token

TID = re.compile(r"[234567abcdefghij][234567abcdefghijklmnopqrstuvwxyz]{12}")
DID = "did:plc:twin"
SERVER = "pds.twin.example"
SERVICE = {"id": "#atproto_pds", "type": "AtprotoPersonalDataServer", "serviceEndpoint": f"https://{SERVER}"}
MAX_VIDEO_BYTES = 50_000_000


def xrpc_error(status: int, name: str, message: str) -> Response:
    """Returns an error in the form of XRPC."""
    return JSONResponse({"error": name, "message": message}, status)


class BlueskyTwin(NetworkTwin):
    """The API of Bluesky with one account: ann.example with the password `app_password`.

    A video job ends at status request number `polls_until_ready`, with `video_result`. `refusal` is the answer to all
    calls that put a record.

    Errors are quoted: of a password in github.com/MarshalX/atproto/issues/517, of a session that has expired in
    github.com/Preloading/TwitterAPIBridge/issues/2, of videos in github.com/bluesky-social/atproto/issues/3097 and
    github.com/bluesky-social/atproto-website/issues/407, and of a missing blob in bluesky-social/atproto,
    packages/pds/src/actor-store/blob/transactor.ts. The other errors have the form of XRPC and a text of our own, on
    which nothing depends.
    """

    def __init__(self, lose_rate: float = 0.0, seed: int = 0) -> None:
        super().__init__(lose_rate, seed)
        self.records: dict[str, Any] = {}
        self.blobs: set[str] = set()
        self.contents: dict[str, bytes] = {}
        """The uploaded bytes by the reference of their blob."""

        self.jwt_count = 0
        self.jobs: dict[str, dict[str, Any]] = {}
        self.video_result: dict[str, Any] = {"state": "JOB_STATE_COMPLETED"}
        self.polls_until_ready = 2
        self.has_confirmed_email = True
        self.app_password = "app-pass"
        self.status: str | None = None
        """The status of an account that is not active, as in the lexicon of createSession."""

        self.refusal: Response | None = None

    def routes(self) -> list[Route]:
        return [
            Route("/xrpc/com.atproto.server.createSession", self.session, methods=["POST"]),
            Route("/xrpc/com.atproto.repo.uploadBlob", self.blob, methods=["POST"]),
            Route("/xrpc/com.atproto.repo.putRecord", self.put, methods=["POST"]),
            Route("/xrpc/com.atproto.server.getServiceAuth", self.service_auth, methods=["GET"]),
            Route("/xrpc/app.bsky.video.uploadVideo", self.video, methods=["POST"]),
            Route("/xrpc/app.bsky.video.getJobStatus", self.job, methods=["GET"]),
        ]

    def limit_headers(self) -> dict[str, str]:
        return {"RateLimit-Reset": str(int(time.time()) + 1)}

    async def session(self, request: Request) -> Response:
        body = await request.json()
        if (body["identifier"], body["password"]) != ("ann.example", self.app_password):
            refusal = xrpc_error(401, "AuthenticationRequired", "Invalid identifier or password")
            return await self.verify_with_faults(refusal)
        self.jwt_count += 1
        body = {"accessJwt": f"jwt{self.jwt_count}", "refreshJwt": "r", "did": DID, "handle": "ann.example"}
        status = {} if self.status is None else {"active": False, "status": self.status}
        answer = {**body, **status, "didDoc": {"id": DID, "service": [SERVICE]}}
        return await self.verify_with_faults(JSONResponse(answer))

    def is_signed_in(self, request: Request) -> bool:
        return bearer_token(request) == f"jwt{self.jwt_count}"

    async def service_auth(self, request: Request) -> Response:
        if not self.is_signed_in(request):
            return xrpc_error(400, "ExpiredToken", "Token has expired")
        parameters = request.query_params
        if not time.time() < int(parameters["exp"]) <= time.time() + 3600:
            return xrpc_error(400, "BadExpiration", "expiration is too far")
        return JSONResponse({"token": f"{parameters['aud']}#{parameters['lxm']}"})

    async def video(self, request: Request) -> Response:
        if (
            bearer_token(request) != f"did:web:{SERVER}#com.atproto.repo.uploadBlob"
            or request.query_params["did"] != DID
        ):
            return xrpc_error(401, "InvalidToken", "not for this")
        if not self.has_confirmed_email:
            body = {"did": "", "error": "unconfirmed_email", "jobId": "", "state": ""}
            return JSONResponse({"jobStatus": body}, 400)
        content = await request.body()
        if request.headers["content-type"] != "video/mp4" or len(content) > MAX_VIDEO_BYTES:
            return xrpc_error(400, "InvalidRequest", "not a video")
        id_ = hashlib.sha256(content).hexdigest()
        known = {"did": DID, "jobId": id_, "state": "JOB_STATE_COMPLETED"}
        if id_ in self.blobs:
            return JSONResponse({**known, "error": "already_exists", "message": "Video already processed"}, 409)
        blob = {"$type": "blob", "ref": {"$link": id_}, "mimeType": "video/mp4", "size": len(content)}
        self.contents[id_] = content
        self.jobs[id_] = {"did": DID, "jobId": id_, "blob": blob, "polls": 0}
        return JSONResponse({"did": DID, "jobId": id_, "state": "JOB_STATE_CREATED"})

    async def job(self, request: Request) -> Response:
        job = self.jobs[request.query_params["jobId"]]
        job["polls"] += 1
        body = {"did": DID, "jobId": job["jobId"]}
        if job["polls"] < self.polls_until_ready:
            return JSONResponse({"jobStatus": {**body, "state": "JOB_STATE_ENCODING", "progress": 50}})
        if self.video_result["state"] == "JOB_STATE_COMPLETED":
            self.blobs.add(job["jobId"])
            body["blob"] = job["blob"]
        return JSONResponse({"jobStatus": {**body, **self.video_result}})

    async def blob(self, request: Request) -> Response:
        if not self.is_signed_in(request):
            return xrpc_error(400, "ExpiredToken", "Token has expired")
        content = await request.body()
        if len(content) > 1_000_000:
            return xrpc_error(400, "BlobTooLarge", "This file is too large")
        link = hashlib.sha256(content).hexdigest()
        self.blobs.add(link)
        self.contents[link] = content
        kind = request.headers["content-type"]
        return JSONResponse({"blob": {"$type": "blob", "ref": {"$link": link}, "mimeType": kind, "size": len(content)}})

    async def put(self, request: Request) -> Response:
        if not self.is_signed_in(request):
            return xrpc_error(400, "ExpiredToken", "Token has expired")
        body = await request.json()
        return await self.act_with_faults(lambda: self._put(body))

    async def _put(self, body: dict[str, Any]) -> Response:
        if self.refusal is not None:
            return self.refusal
        record, key = body["record"], body["rkey"]
        if body["repo"] != DID or not TID.fullmatch(key) or len(record["text"]) > 300:
            return xrpc_error(400, "InvalidRequest", "Invalid record")
        embed = record.get("embed", {})
        blobs = [each["image"] for each in embed.get("images", ())] + [embed[kind] for kind in embed if kind == "video"]
        missing = [each["ref"]["$link"] for each in blobs if each["ref"]["$link"] not in self.blobs]
        if missing:
            return xrpc_error(400, "BlobNotFound", f"Could not find blob: {missing[0]}")
        content = orjson.dumps(record, option=orjson.OPT_SORT_KEYS)
        if self.records.get(key) != content:
            # A known key with other content edits the post, which nothing may do, so the ledger gets a second entry.
            self.records[key] = content
            self.bodies.append(record)
            self.publish(DID, record["text"], key)
        return JSONResponse({"uri": f"at://{DID}/app.bsky.feed.post/{key}", "cid": hashlib.sha256(content).hexdigest()})
