"""The pictures of the demo's people and communities: who has which motif, and in which colours."""

import base64
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

PROGRAM = Path(__file__).with_name("drawing_program.py")
SQUARE, WIDE, LANDSCAPE = (512, 512), (1500, 500), (1200, 800)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture to draw. Colours: the sky above, the sky at the horizon, then what is far, what is near, and lights."""

    motif: str
    colours: str
    size: tuple[int, int] = SQUARE


AVATARS = {
    "hana": Drawing("beacon", "#4a3168 #f29a72 #8a4f6d #33203f #ff9b3d"),
    "ken": Drawing("summit", "#4a90c8 #cfe8f2 #6f9db5 #3d6682 #ffffff"),
    "yuki": Drawing("pines", "#7fa9b3 #d3e6e6 #9dc0c2 #2b565e #eef5f8"),
    "emma": Drawing("fields", "#f6c667 #fbe7b0 #b9a23c #7d8f2e #e8623d"),
    "nagi": Drawing("moonrise", "#0f2a3d #2b7f8c #3fa7a6 #0d3b4c #fdf3d0"),
    "priya": Drawing("lighthouse", "#3d2c6d #e58fb0 #f6c9c0 #b8336a #ffe08a"),
    "liam": Drawing("night", "#0b1437 #33467f #1c2b5e #0a1130 #f4e7b0"),
    "noor": Drawing("sunrise", "#f7d9c4 #fdeee0 #f5b994 #e8846b #ffd35c"),
}
"""Avatars by handle. Sora and Oscar have none, so that initials are seen as well."""

BANNERS = {
    "hana": Drawing("beacons", "#4a3168 #f29a72 #8a4f6d #33203f #ffb347", WIDE),
    "priya": Drawing("moonrise", "#3d2c6d #e58fb0 #f6a9b0 #4b2f73 #ffe9c2", WIDE),
}

COMMUNITY_PICTURES = {
    "hikers": Drawing("beacons", "#15324a #7e8f8c #2f6159 #123431 #ffae3d"),
    "kitchen": Drawing("bowl", "#e8955a #f6c98f #a5542f #2e5f63 #fff6e6"),
    "library": Drawing("house", "#1d2440 #7a5a86 #2a2a4a #151a30 #ffcf70"),
    "platform": Drawing("boat", "#bfe3f0 #eef8f7 #3b8fc2 #1d4f7a #ffffff"),
    "water-cooler": Drawing("waves", "#1c7f8c #1c7f8c #1c7f8c #2aa5a0 #e9f7f2"),
}
"""Pictures of communities by key. All have one."""

COMMUNITY_BANNERS = {"hikers": Drawing("hills", "#6aa3b8 #fde3b5 #8fb39a #2f5f4f #fff4cf", WIDE)}


def draw(drawings: Sequence[Drawing]) -> list[bytes]:
    """Returns drawings as PNG files. Blocks; runs another process, so that this one needs no Pillow."""
    given = json.dumps([asdict(each) for each in drawings]).encode()
    command = [sys.executable, "-I", str(PROGRAM)]
    drawn = subprocess.run(command, input=given, stdout=subprocess.PIPE, check=True)  # noqa: S603 - our own program
    return [base64.b64decode(file) for file in json.loads(drawn.stdout)]
