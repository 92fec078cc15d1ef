"""Two pictures for the demo, drawn as PNG files: hills at sunrise, and a beacon at night."""

import math
import struct
import zlib
from dataclasses import dataclass
from functools import cache

WIDTH, HEIGHT = 600, 400
LIGHT_RADIUS = 80

Colour = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Landscape:
    """Colours of a picture: the sky at the horizon and above, the hills from the farthest on, and a round light."""

    horizon: Colour
    zenith: Colour
    hills: tuple[Colour, ...]
    light: Colour
    light_at: tuple[int, int]


SUNRISE = Landscape(
    (255, 214, 150), (240, 120, 90), ((120, 90, 110), (80, 60, 85), (45, 38, 60)), (255, 245, 215), (190, 140)
)
BEACON = Landscape((40, 50, 90), (15, 18, 45), ((30, 36, 62), (20, 24, 44), (10, 12, 26)), (255, 150, 60), (420, 170))


@cache
def draw(landscape: Landscape) -> bytes:
    """Returns the picture as a PNG file."""
    ridges = [[_ridge(number, x) for x in range(WIDTH)] for number in range(len(landscape.hills))]
    rows = bytearray()
    for y in range(HEIGHT):
        row = _sky(landscape, y)
        for colour, ridge in zip(landscape.hills, ridges, strict=True):
            hill = bytes(colour)
            row = [hill if y > height else pixel for height, pixel in zip(ridge, row, strict=True)]
        rows += b"\0" + b"".join(row)
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    chunks = _chunk(b"IHDR", header), _chunk(b"IDAT", zlib.compress(bytes(rows))), _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _ridge(number: int, x: int) -> float:
    """Returns the height of a row of hills at a column, from the top of the picture."""
    return HEIGHT * (0.5 + 0.14 * number + 0.08 * math.sin(x / (70 + 30 * number) + 2 * number))


def _sky(landscape: Landscape, y: int) -> list[bytes]:
    """Returns the pixels of a row of the sky, with the part of the light that is in the row."""
    sky = _mix(landscape.horizon, landscape.zenith, 1 - y / HEIGHT)
    row = [bytes(sky)] * WIDTH
    middle, height = landscape.light_at
    for x in range(middle - LIGHT_RADIUS, middle + LIGHT_RADIUS):
        share = 1.6 * (1 - math.hypot(x - middle, y - height) / LIGHT_RADIUS)
        if share > 0 and 0 <= x < WIDTH:
            row[x] = bytes(_mix(sky, landscape.light, min(share, 1)))
    return row


def _mix(first: Colour, second: Colour, share: float) -> Colour:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(first, second, strict=True))
    return red, green, blue


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
