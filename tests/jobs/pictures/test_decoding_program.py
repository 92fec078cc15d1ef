"""The decoding program's limits, and damaged pictures."""

import io
import re
import subprocess
import sys
from dataclasses import asdict

import blurhash
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.pictures import decoding_program
from jobs.pictures.decoder import PROGRAM
from jobs.pictures.decoding_program import MAX_OUTPUT_BYTES
from jobs.pictures.results import ATTACHMENT, PictureRefusalReason
from tests.jobs.pictures.hostile_files import animation, encoded, gradient

PICTURES = [
    *(encoded(gradient(40, 30), name) for name in ("JPEG", "PNG", "GIF", "WEBP", "AVIF")),
    animation("GIF", 3),
    animation("WEBP", 3),
    animation("PNG", 3),
]


def limited(statement: str) -> subprocess.CompletedProcess[str]:
    """Runs a statement under the limits of the program, in a process of its own."""
    lines = [
        "import importlib.util, sys",
        f"spec = importlib.util.spec_from_file_location('program', {str(PROGRAM)!r})",
        "program = importlib.util.module_from_spec(spec)",
        "spec.loader.exec_module(program)",
        "program.MAX_CPU_S = 1",
        "program.limit_resources()",
        statement,
    ]
    return subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(PICTURES), st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=8))
def test_damaged_picture_is_answered(picture: bytes, changes: list[tuple[int, int]]) -> None:
    damaged = bytearray(picture)
    for position, value in changes:
        damaged[position % len(damaged)] = value
    header, contents = decoding_program.answer(io.BytesIO(bytes(damaged)), asdict(ATTACHMENT))
    if "reason" in header:
        assert header["reason"] in PictureRefusalReason.__members__
        assert contents == []
    else:
        assert len(contents) == len(header["renditions"]) >= 1


def test_refusal_reasons_of_the_program_are_known() -> None:
    reasons = set(re.findall(r'(?:Refused\(|"reason": )"([A-Z_]+)"', PROGRAM.read_text()))
    assert {"BROKEN", "NOT_A_PICTURE", "TOO_MANY_PIXELS"} < reasons
    assert reasons < set(PictureRefusalReason.__members__)


def test_memory_is_limited() -> None:
    assert "MemoryError" in limited(f"bytearray({decoding_program.MAX_MEMORY_BYTES * 5 // 4})").stderr
    assert limited(f"bytearray({decoding_program.MAX_MEMORY_BYTES // 2})").returncode == 0


def test_processor_time_and_output_are_limited() -> None:
    assert limited("while True: pass").returncode < 0
    statement = f"import tempfile; f = tempfile.TemporaryFile(); f.write(bytes({MAX_OUTPUT_BYTES + 1})); f.flush()"
    assert "File too large" in limited(statement).stderr


def test_missing_memory_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhaust(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(decoding_program, "reduce", exhaust)
    header, _ = decoding_program.answer(io.BytesIO(PICTURES[0]), asdict(ATTACHMENT))
    assert header["reason"] == "NEEDS_TOO_MUCH_MEMORY"


def test_blurhash_shows_the_colours() -> None:
    rows = blurhash.decode(decoding_program.hash_of(gradient(300, 200)), 8, 8)
    assert rows[0][4][0] > 180 > 90 > rows[7][4][0]
