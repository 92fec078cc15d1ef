"""Posting to one topic: the product's group commit, and in the same run one transaction for each message.

Every client is a user of their own who posts again as soon as the last message is acknowledged. Afterwards the topic is
read back: it must hold exactly what was acknowledged, in strictly increasing order.
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.load import Job, Report, post_request
from benchmarks.servers import Bench, Target, bench, one_by_one
from tests.client import Client, client

WARM_UP_S = 2.0
GROUP_COMMIT, ONE_EACH, EMPTY = "group commit", "a transaction each", "empty mutation"
POST = "mutation($input: PostMessageInput!) { postMessage(input: $input) { id timestamp } }"
PAGE = """query($topic: ID!, $oldest: Timestamp!) {
  messages(topicId: $topic, oldest: $oldest, limit: 999, inclusive: false) { items { timestamp } hasNewer }
}"""
TEXT = "The beacon on the next hill is lit: pass it on, and keep yours burning until the one after it answers."
