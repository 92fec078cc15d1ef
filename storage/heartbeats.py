"""Heartbeats of background processes, for operators.

A heartbeat stores the process's state. MongoDB deletes the state an hour after the last heartbeat.
"""

import asyncio
import os
import secrets
import socket
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NotRequired, TypedDict

import pymongo
from pymongo.errors import PyMongoError

from storage.metrics import process_metrics
from storage.mongo import Collection, Document, Mongo, literals

INTERVAL_S = 5.0
REMOVAL_TIMEOUT_S = 1


class SweepCounts(TypedDict):
    """Counts of one sweeper since its worker's start."""

    runs: int
    """Completed sweeps."""

    found: int
    """Items that the sweeps found."""


class WorkerDocument(TypedDict):
    """The heartbeat of a worker, in `workers`. Expires an hour after `at`."""

    _id: str
    """Host and process."""

    at: datetime
    """Last heartbeat, by the database's clock."""

    sweeps: dict[str, SweepCounts]
    """Counts by sweeper name."""

    metrics: NotRequired[str]
    """Metrics in Prometheus's text format. Workers of older versions store none."""

    label: NotRequired[str]
    """Random name of the worker in /metrics, which everyone may read. Workers of older versions store none."""


class MailTailDocument(TypedDict):
    """The heartbeat of a mail log reader, in `mail_tails`. Expires an hour after `at`."""

    _id: str
    """Host and process."""

    at: datetime
    """Last heartbeat, by the database's clock."""

    org: str
    """Organization whose mail the log describes."""

    file: str
    """Absolute path of the log."""

    lines: int
    """Lines read since the reader's start."""

    events: int
    """New delivery events since the reader's start."""

    rejected: NotRequired[int]
    """Delivery events that the ledger rejected since the reader's start; absent in documents of earlier releases."""

    behind_bytes: int
    """Bytes of the log that are not read yet."""


class RecentWorker(WorkerDocument):
    """A worker that stored a heartbeat in the last hour."""

    silent_s: float
    """Seconds since the last heartbeat."""


class RecentMailTail(MailTailDocument):
    """A mail log reader that stored a heartbeat in the last hour."""

    silent_s: float
    """Seconds since the last heartbeat."""


def process_name() -> str:
    """Returns a name of this process for operators: host and process id."""
    return f"{socket.gethostname()}/{os.getpid()}"


class Heartbeat:
    """Writes a process's state to its document every five seconds."""

    def __init__(self, documents: Collection, process: str, state: Callable[[], Mapping[str, Any]]) -> None:
        """`process` names host and process. `state` returns the fields to store beside `_id` and `at`."""
        self._documents = documents
        self._process = process
        self._state = state

    async def run(self) -> None:
        """Runs until it is cancelled, and then removes the document."""
        try:
            while True:
                await self._write()
                await asyncio.sleep(INTERVAL_S)
        finally:
            await asyncio.shield(self._remove())

    async def _write(self) -> None:
        state = literals(self._state())
        try:
            await self._documents.update_one({"_id": self._process}, [{"$set": {"at": "$$NOW", **state}}], upsert=True)
        except PyMongoError:
            return  # The next heartbeat writes the whole state.

    async def _remove(self) -> None:
        try:
            with pymongo.timeout(REMOVAL_TIMEOUT_S):
                await self._documents.delete_one({"_id": self._process})
        except PyMongoError:
            return


class WorkerHeartbeat(Heartbeat):
    """The heartbeat of a worker, with its sweeps and metrics."""

    def __init__(self, mongo: Mongo, worker: str) -> None:
        """`worker` names host and process."""
        super().__init__(mongo["workers"], worker, self._state_now)
        self._sweeps: dict[str, SweepCounts] = {}
        self._label = secrets.token_hex(4)

    def add_sweep(self, sweeper: str, found: int) -> None:
        """Counts a completed sweep and the items that it found."""
        counts = self._sweeps.setdefault(sweeper, {"runs": 0, "found": 0})
        counts["runs"] += 1
        counts["found"] += found

    def _state_now(self) -> Document:
        return {"sweeps": self._sweeps, "metrics": process_metrics(), "label": self._label}


async def recent_workers(mongo: Mongo) -> list[RecentWorker]:
    """Returns the workers with a heartbeat in the last hour, by name."""
    return await _with_silence(mongo, "workers")


async def recent_mail_tails(mongo: Mongo) -> list[RecentMailTail]:
    """Returns the mail log readers with a heartbeat in the last hour, by name."""
    return await _with_silence(mongo, "mail_tails")


async def _with_silence(mongo: Mongo, collection: str) -> list[Any]:
    silent_s: Document = {"$divide": [{"$subtract": ["$$NOW", "$at"]}, 1000]}
    return await mongo.aggregate(collection, [{"$set": {"silent_s": silent_s}}, {"$sort": {"_id": 1}}])
