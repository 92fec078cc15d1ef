"""Pictures, and files that pretend to be pictures, made for the tests."""

import io
import struct
import zlib
from functools import cache
from typing import Any

from PIL import Image


def encoded(image: Image.Image, name: str, **options: Any) -> bytes:
    output = io.BytesIO()
    image.save(output, name, **options)
    return output.getvalue()


def gradient(width: int, height: int) -> Image.Image:
    """Returns an RGB picture that is red at the top and dark at the bottom."""
    ramp = Image.linear_gradient("L").resize((width, height)).transpose(Image.Transpose.ROTATE_180)
    return Image.merge("RGB", (ramp, Image.new("L", ramp.size, 40), Image.new("L", ramp.size, 80)))


def animation(name: str, frames: int, width: int = 20, height: int = 10, **options: Any) -> bytes:
    images = [Image.new("RGB", (width, height), (frame * 50 % 256, 100, frame % 256)) for frame in range(frames)]
    return encoded(images[0], name, save_all=True, append_images=images[1:], **options)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


@cache
def png_bomb(width: int, height: int) -> bytes:
    """Returns a small PNG file whose pixels take `width * height` bytes."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    compressor = zlib.compressobj(9)
    row = bytes(width + 1)
    body = b"".join(compressor.compress(row) for _ in range(height)) + compressor.flush()
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def repeated_gif(frames: int, width: int, height: int) -> bytes:
    """Returns a GIF file that shows the same frame again and again."""
    still = encoded(Image.new("P", (width, height)), "GIF")
    start = still.index(b"\x2c\0\0\0\0")
    return still[:start] + still[start:-1] * frames + still[-1:]


def slow_picture() -> bytes:
    """Returns an animation that takes more than a second to decode."""
    return repeated_gif(15, 1990, 1990)


def gps_exif(orientation: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif[0x010E] = "Secret description"
    exif.get_ifd(0x8825).update({1: "N", 2: (35.0, 41.0, 22.0), 3: "E", 4: (139.0, 41.0, 30.0)})
    return exif.tobytes()
