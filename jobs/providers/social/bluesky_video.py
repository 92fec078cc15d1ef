"""Bluesky's video service: processes a video and stores a blob on the account's server. Publishes nothing.

Uploading the same video again returns the existing blob.
Source: docs.bsky.app, tutorials/video; lexicons app.bsky.video.uploadVideo, getJobStatus and defs.
"""

import asyncio
from typing import Any

from jobs.providers.egress import Fetched
from jobs.providers.social.http import UPLOAD_TIMEOUT_S, Http, NetworkResponse, bearer, check
from jobs.providers.social.network import CallRefused, NoEffect, OutcomeUncertain

OWN_ADDRESS = "https://video.bsky.app"
MAX_VIDEO_BYTES = 50_000_000
POLL_S = 1.5
POLLS = 400
FINAL_FAILURES = frozenset({"validation_failure", "encoding_failure", "pds_upload_unsupported_blob_size"})
"""Codes of failures that a retry with the same video would repeat."""


class VideoService:
    """Client of the video service. Its responses hold the job's status at the top or in `jobStatus`."""

    def __init__(self, http: Http, address: str = OWN_ADDRESS, poll_s: float = POLL_S) -> None:
        """`poll_s` is the pause in seconds between two status requests."""
        self._http = http
        self._address = address
        self._poll_s = poll_s

    async def begin(self, token: str, did: str, name: str, video: Fetched) -> dict[str, Any]:
        """Starts to process a video. `token` authorizes it for the account `did`. Raises: CallRefused, NoEffect."""
        try:
            answer = await self._http.send(
                "POST",
                f"{self._address}/xrpc/app.bsky.video.uploadVideo",
                params={"did": did, "name": name},
                headers=bearer(token) | {"Content-Type": "video/mp4"},
                content=video.body,
                timeout_s=UPLOAD_TIMEOUT_S,
            )
            job = _job(answer)
        except OutcomeUncertain as error:
            raise NoEffect(str(error)) from None
        if not job.get("jobId"):
            raise CallRefused("MEDIA_REFUSED", str(job.get("error") or answer.summary))
        return job

    async def blob(self, job: dict[str, Any]) -> Any:
        """Waits for the job, and returns its blob. Raises: CallRefused, NoEffect."""
        try:
            return await self._processed(job)
        except OutcomeUncertain as error:
            raise NoEffect(str(error)) from None

    async def _processed(self, job: dict[str, Any]) -> Any:
        for _ in range(POLLS):
            # The job of an already known video has failed, and has a blob.
            if job.get("blob"):
                return job["blob"]
            if job.get("state") == "JOB_STATE_FAILED":
                raise _failure(job)
            answer = await self._http.ask(
                "GET", f"{self._address}/xrpc/app.bsky.video.getJobStatus", params={"jobId": str(job["jobId"])}
            )
            job = {**job, **_job(answer)}
            if not job.get("blob"):
                await asyncio.sleep(self._poll_s)
        raise NoEffect("Bluesky is still processing the video.")


def _job(answer: NetworkResponse) -> dict[str, Any]:
    """Returns the job's status from either place. Raises: as `check` for a response without one."""
    status = answer["jobStatus"] or answer.json
    is_job = isinstance(status, dict) and "state" in status
    if not is_job:
        raise OutcomeUncertain(f"no job in {check(answer).summary}")
    return dict(status)


def _failure(job: dict[str, Any]) -> CallRefused | NoEffect:
    message = str(job.get("message") or job.get("error") or "The video was not processed.")
    if job.get("failureCode") in FINAL_FAILURES:
        return CallRefused("MEDIA_REFUSED", message)
    return NoEffect(message)
