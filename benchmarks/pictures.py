"""Memory and time of the picture decoder for the largest pictures of each format, from an idle worker's memory on.

The process of this benchmark stands for the worker: it holds the file that was uploaded and receives the renditions.
Each picture is decoded in a process of its own, whose memory is read from /proc every 2 ms. The growth of the
benchmark's process and the whole memory of the decoder must stay below 200 MiB together.

    .venv/bin/python -m benchmarks.pictures
"""

import asyncio
import io
import os
import time
from collections.abc import Callable, Iterator
from math import isqrt
from pathlib import Path
from typing import Any

from jobs.pictures.decoder import PROGRAM, PictureDecoder
from jobs.pictures.results import ATTACHMENT
from storage.files.pictures import DecodedPicture

LIMIT_MIB = 200


def picture(name: str, million_pixels: float, mode: str = "RGB", **options: Any) -> bytes:
    """Returns a square picture of coarse noise, made in a process of its own."""
    from PIL import Image

    side = isqrt(int(million_pixels * 1e6))
    image = Image.effect_noise((side // 8, side // 8), 60).resize((side, side)).convert(mode)
    output = io.BytesIO()
    image.save(output, name, **options)
    return output.getvalue()


def animation(name: str, frames: int, width: int, height: int) -> bytes:
    """Returns an animation of turning noise."""
    from PIL import Image

    still = Image.effect_noise((width // 8, height // 8), 60).resize((width, height))
    images = [still.rotate(3 * frame).convert("RGB") for frame in range(frames)]
    output = io.BytesIO()
    images[0].save(output, name, save_all=True, append_images=images[1:], duration=40)
    return output.getvalue()


def cases() -> Iterator[tuple[str, Callable[..., bytes], tuple[Any, ...], dict[str, Any]]]:
    """Yields the label of each picture and how it is made."""
    yield "JPEG, 12 million pixels", picture, ("JPEG", 12), {}
    yield "JPEG, 16.7 million pixels", picture, ("JPEG", 16.7), {}
    yield "JPEG, 50 million pixels", picture, ("JPEG", 49.9), {}
    yield "JPEG, progressive, 10 million pixels", picture, ("JPEG", 10), {"progressive": True, "subsampling": 0}
    yield "JPEG, progressive, CMYK, 10 million pixels", picture, ("JPEG", 10, "CMYK"), {"progressive": True}
    yield "PNG, 15 million pixels", picture, ("PNG", 15), {"compress_level": 1}
    yield "PNG, with opacity, 15 million pixels", picture, ("PNG", 15, "RGBA"), {"compress_level": 1}
    yield "GIF, 15 million pixels", picture, ("GIF", 15, "P"), {}
    yield "WebP, 6 million pixels", picture, ("WEBP", 6), {"method": 0}
    yield "WebP, lossless, 6 million pixels", picture, ("WEBP", 6, "RGBA"), {"method": 0, "lossless": True}
    yield "AVIF, 10 million pixels", picture, ("AVIF", 10), {"speed": 10}
    yield "GIF, 90 frames of 480 × 270", animation, ("GIF", 90, 480, 270), {}
    yield "WebP, 30 frames of 1600 × 1200", animation, ("WEBP", 30, 1600, 1200), {}


def make(function: Callable[..., bytes], positional: tuple[Any, ...], named: dict[str, Any]) -> bytes:
    """Runs a maker in a child process, so that its memory does not count."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        with os.fdopen(writer, "wb") as file:
            file.write(function(*positional, **named))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        content = file.read()
    os.wait()
    return content


def resident_mib(process_id: int | str) -> float:
    """Returns the memory of a process that is not swapped out, or 0 if the process has ended."""
    try:
        pages = int(Path(f"/proc/{process_id}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE") / 2**20
    except (OSError, IndexError):
        return 0.0


def decoders() -> list[str]:
    """Returns the ids of the decoders that this process has started."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [child for child in children if str(PROGRAM) in Path(f"/proc/{child}/cmdline").read_text()]


async def measure(label: str, content: bytes, idle_mib: float) -> float:
    """Decodes a picture, prints a row of the table, and returns the peak of the memory above idle."""
    started = time.monotonic()
    task = asyncio.create_task(PictureDecoder().decode(content, ATTACHMENT))
    decoder_peak = together_peak = 0.0
    while not task.done():
        decoder = sum(resident_mib(child) for child in decoders())
        decoder_peak = max(decoder_peak, decoder)
        together_peak = max(together_peak, decoder + resident_mib("self") - idle_mib)
        await asyncio.sleep(0.002)
    together_peak = max(together_peak, resident_mib("self") - idle_mib)
    result = await task
    outcome = "decoded" if isinstance(result, DecodedPicture) else result.reason
    sizes = f"{len(content) / 2**20:6.1f} | {decoder_peak:7.0f} | {together_peak:8.0f}"
    print(f"| {label:42} | {sizes} | {time.monotonic() - started:5.1f} | {outcome} |", flush=True)
    return together_peak


async def main() -> None:
    """Prints the table, and fails if a picture takes more memory than allowed."""
    idle_mib = resident_mib("self")
    print(f"| picture{' ' * 35} | MiB | decoder, MiB | above idle, MiB | s | outcome |")
    print("| --- | --- | --- | --- | --- | --- |")
    peaks = [await measure(label, make(*maker), idle_mib) for label, *maker in cases()]
    assert max(peaks) < LIMIT_MIB, f"{max(peaks):.0f} MiB above idle"


if __name__ == "__main__":
    asyncio.run(main())
