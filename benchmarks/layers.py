"""Processor time of a process by layer, from samples of py-spy.

Each sample counts for the layer of its innermost known frame. Only threads that hold the GIL are sampled. The time of a
C extension counts for the function that called it.
"""

import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from rich.table import Table

RATE_HZ = 250
PY_SPY = Path(sys.executable).parent / "py-spy"

LAYER_PATTERNS: tuple[tuple[str, str], ...] = (
    ("HTTP: uvicorn and its socket", r"/uvicorn/"),
    ("HTTP: Starlette", r"/starlette/"),
    ("JSON", r"(?:encode_json|parse_json) \(.*/server/graphql/http\.py"),
    ("sign-in: token, viewer", r"/server/auth/|/jwt/"),
    (
        "GraphQL over HTTP",
        r"/strawberry/(?:http|asgi)/|/server/app\.py|/server/graphql/(?:coalesc\w+|cached_execution|http)\.py|/cross_web/",
    ),
    (
        "documents: parsing, validation, cost",
        r"/server/graphql/(?:limits|cost|documents)\.py|/graphql/(?:language|validation)/",
    ),
    ("compiled execution", r"/server/graphql/compiled/|<compiled "),
    ("graphql-core's execution", r"/site-packages/graphql/|/strawberry/|/schema/"),
    ("resolvers, access checks", r"/resolvers/"),
    ("addresses: normalization and hashing", r"/storage/mail/addresses\.py"),
    ("decoding of records", r"/storage/mail/standings\.py"),
    (
        "decoding of records",
        r"(?:message_record|decode|user_record|_topic|_reactions|__init__) \(.*(?:/storage/|<string>)|<string>",
    ),
    ("lookups: batches, filters", r"/storage/"),
    ("BSON", r"/bson/|unpack_response|_op_msg"),
    ("driver: its threads", r"/motor/|/concurrent/futures/|/threading\.py|/queue\.py"),
    ("driver", r"/pymongo/"),
    ("Redis", r"/redis/|/hiredis/"),
    ("event loop and its sockets", r"/asyncio/|/uvloop/"),
)
"""Names of layers, each with a pattern that its frames match. A frame is a text such as "function (file:line)". The
first match counts."""

_LAYERS = [(name, re.compile(pattern)) for name, pattern in LAYER_PATTERNS]
_STACK = re.compile(r"(.*) (\d+)")


def measure_shares(pid: int, seconds: float) -> dict[str, float]:
    """Samples a process for `seconds`. Returns the percentage of samples by layer, largest first.

    Raises: CalledProcessError.
    """
    with tempfile.TemporaryDirectory(prefix="noroshi-layers-") as folder:
        path = Path(folder) / "stacks"
        options = ["--gil", "--full-filenames", "--rate", str(RATE_HZ), "--duration", str(round(seconds))]
        command = [str(PY_SPY), "record", "--format", "raw", *options, "--pid", str(pid), "--output", str(path)]
        subprocess.run(command, check=True, capture_output=True)
        counts = Counter[str]()
        for layer, count in _layer_counts(path.read_text()):
            counts[layer] += count
    total = max(counts.total(), 1)
    return {layer: 100 * count / total for layer, count in counts.most_common()}


def table(shares: Mapping[str, float], title: str, unit: str, cpu_ms: float) -> Table:
    """Returns a table of `shares`, in percent and in ms.

    `cpu_ms` is the processor time of one `unit`, such as a page.
    """
    layer_table = Table("layer", title=title)
    layer_table.add_column("%", justify="right")
    layer_table.add_column(f"ms a {unit}", justify="right")
    for layer, percent in shares.items():
        layer_table.add_row(layer, f"{percent:.1f}", f"{percent * cpu_ms / 100:.3f}")
    return layer_table


def _layer_counts(stacks: str) -> Iterator[tuple[str, int]]:
    for match in map(_STACK.fullmatch, stacks.splitlines()):
        if match is not None:
            yield _layer(match[1]), int(match[2])


def _layer(stack: str) -> str:
    for frame in reversed(stack.split(";")):
        for name, pattern in _LAYERS:
            if pattern.search(frame):
                return name
    return "everything else"
