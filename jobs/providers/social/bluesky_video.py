"""Bluesky's video service: processes a video and stores a blob on the account's server. Publishes nothing.

Uploading the same video again returns the existing blob.
Source: docs.bsky.app, tutorials/video; lexicons app.bsky.video.uploadVideo, getJobStatus and defs.
"""

import asyncio
from typing import Any

from jobs.providers.social.http import UPLOAD_TIMEOUT_S, HttpClient, NetworkResponse, bearer, require_success
from jobs.providers.social.media import MediaFile
from jobs.providers.social.network import OutcomeUncertain, PublishingRefused, RetryableFailure
from storage.publishing.network_files import FILE_LIMITS
from storage.publishing.networks import Network

OWN_ADDRESS = "https://video.bsky.app"
MAX_VIDEO_BYTES = FILE_LIMITS[Network.BLUESKY].max_video_bytes
POLL_S = 1.5
POLLS = 400
FINAL_FAILURES = frozenset({"validation_failure", "encoding_failure", "pds_upload_unsupported_blob_size"})
"""Codes of failures that a retry with the same video would repeat."""


class VideoService:
    """Client of the video service. The service's responses hold the job's status at the top or in `jobStatus`."""

    def __init__(self, http: HttpClient, address: str = OWN_ADDRESS, poll_s: float = POLL_S) -> None:
        """`poll_s` is the pause in seconds between two status requests."""
        self._http = http
        self._address = address
        self._poll_s = poll_s

    async def begin(self, token: str, did: str, name: str, video: MediaFile) -> dict[str, Any]:
        """Uploads a video and returns the job. `token` authorizes the upload for the account `did`.

        Raises: PublishingRefused, RetryableFailure.
        """
        try:
            response = await self._http.send(
                "POST",
                f"{self._address}/xrpc/app.bsky.video.uploadVideo",
                params={"did": did, "name": name},
                headers=bearer(token) | {"Content-Type": "video/mp4"},
                content=video,
                timeout_s=UPLOAD_TIMEOUT_S,
            )
            job = _job(response)
        except OutcomeUncertain as error:
            raise RetryableFailure(str(error)) from None
        if not job.get("jobId"):
            raise PublishingRefused("MEDIA_REFUSED", str(job.get("error") or response.summary))
        return job

    async def wait_for_blob(self, job: dict[str, Any]) -> Any:
        """Waits until the job has ended, and returns its blob. Raises: PublishingRefused, RetryableFailure."""
        try:
            return await self._poll_for_blob(job)
        except OutcomeUncertain as error:
            raise RetryableFailure(str(error)) from None

    async def _poll_for_blob(self, job: dict[str, Any]) -> Any:
        for _ in range(POLLS):
            # A video that was uploaded before gives a failed job with the blob of the first upload.
            if job.get("blob"):
                return job["blob"]
            if job.get("state") == "JOB_STATE_FAILED":
                raise _failure(job)
            response = await self._http.send_retryable(
                "GET", f"{self._address}/xrpc/app.bsky.video.getJobStatus", params={"jobId": str(job["jobId"])}
            )
            job = {**job, **_job(response)}
            if not job.get("blob"):
                await asyncio.sleep(self._poll_s)
        raise RetryableFailure("Bluesky is still processing the video.")


def _job(response: NetworkResponse) -> dict[str, Any]:
    """Returns the job's status, which a response of any HTTP status may hold.

    Raises: OutcomeUncertain for a 2xx response without a job; for other responses without a job, as `require_success`.
    """
    status = response["jobStatus"] or response.json
    is_job = isinstance(status, dict) and "state" in status
    if not is_job:
        raise OutcomeUncertain(f"no job in {require_success(response).summary}")
    return dict(status)


def _failure(job: dict[str, Any]) -> PublishingRefused | RetryableFailure:
    message = str(job.get("message") or job.get("error") or "The video was not processed.")
    if job.get("failureCode") in FINAL_FAILURES:
        return PublishingRefused("MEDIA_REFUSED", message)
    return RetryableFailure(message)
