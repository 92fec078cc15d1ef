"""Bluesky's video service: takes a video, processes it, and leaves a blob with the account's server.

Uploading the same video again gives the blob that there is. Publishes nothing.
Source: docs.bsky.app, tutorials/video; lexicons app.bsky.video.uploadVideo, getJobStatus and defs.
"""

import asyncio
from typing import Any

from jobs.providers.egress import Fetched
from jobs.providers.social.http import UPLOAD_TIMEOUT_S, Answer, Http, bearer, check
from jobs.providers.social.network import NoEffect, Refused, Uncertain

OWN_ADDRESS = "https://video.bsky.app"
MAX_VIDEO_BYTES = 50_000_000
POLL_S = 1.5
POLLS = 400
FINAL_FAILURES = frozenset({"validation_failure", "encoding_failure", "pds_upload_unsupported_blob_size"})
"""Codes of failures that the same video would meet again."""


class VideoService:
    """Answers with a job's status, sometimes inside of `jobStatus` and sometimes not; a known video is an error."""

    def __init__(self, http: Http, address: str = OWN_ADDRESS, poll_s: float = POLL_S) -> None:
        """`poll_s` is how long it waits between two looks at a job."""
        self._http = http
        self._address = address
        self._poll_s = poll_s

    async def begin(self, token: str, did: str, name: str, video: Fetched) -> dict[str, Any]:
        """The job that processes the video. `token` lets it act for the account `did`. Raises: Refused, NoEffect."""
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
        except Uncertain as error:
            raise NoEffect(str(error)) from None
        if not job.get("jobId"):
            raise Refused("MEDIA_REFUSED", str(job.get("error") or answer.told))
        return job

    async def blob(self, job: dict[str, Any]) -> Any:
        """The blob that a job leads to, once it is there. Raises: Refused, NoEffect."""
        try:
            return await self._processed(job)
        except Uncertain as error:
            raise NoEffect(str(error)) from None

    async def _processed(self, job: dict[str, Any]) -> Any:
        for _ in range(POLLS):
            # A video that was known already has failed, and has a blob.
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


def _job(answer: Answer) -> dict[str, Any]:
    """The job's status, wherever it is. Raises: as check, unless the answer tells of a job."""
    status = answer["jobStatus"] or answer.json
    is_job = isinstance(status, dict) and "state" in status
    if not is_job:
        raise Uncertain(f"no job in {check(answer).told}")
    return dict(status)


def _failure(job: dict[str, Any]) -> Refused | NoEffect:
    told = str(job.get("message") or job.get("error") or "The video was not processed.")
    if job.get("failureCode") in FINAL_FAILURES:
        return Refused("MEDIA_REFUSED", told)
    return NoEffect(told)
