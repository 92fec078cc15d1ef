"""The program that decodes one picture: it reads a file from standard input and writes the renditions to its output.

`decoder.py` starts it as a script, so that neither the worker's modules nor its settings are in the process. Only the
demo's drawing program imports Pillow, too. The output is a line of JSON, then the bytes of the renditions in the order
of the line.
"""

import io
import json
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import Any, BinaryIO

import blurhash
import pi_heif
from PIL import AvifImagePlugin, Image, ImageCms, ImageOps, UnidentifiedImageError

FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "AVIF", "HEIF")
"""Formats that are opened. Pillow calls a JPEG file with further pictures behind the first, as phones write it, MPO."""

MAX_PIXELS = {
    "JPEG": 50_000_000,
    "PNG": 15_000_000,
    "GIF": 15_000_000,
    "WEBP": 8_300_000,
    "AVIF": 12_500_000,
    "HEIF": 12_500_000,
}
"""Pixels of a picture by format, checked before it is decoded. JPEG files are decoded at a reduced size."""

MAX_PROGRESSIVE_PIXELS = 12_500_000
"""Pixels of a progressive JPEG file. libjpeg holds all its coefficients in memory."""

MAX_SIDE = 16_383
"""The longest side of a picture in pixels: the most that WebP can store."""

MAX_FRAMES = 300
MAX_ANIMATION_PIXELS = 60_000_000
"""Pixels of all frames of an animation that is kept."""

MAX_MEMORY_BYTES = 148 * 1024 * 1024
"""Address space that the process may add to that of the interpreter and the libraries, which is about 36 MiB."""

MAX_OUTPUT_BYTES = 18 * 1024 * 1024
MAX_CPU_S = 15
MAX_WALL_S = 60
"""Ends the process if the worker that started it was killed and cannot."""

MIN_FRAME_MS = 20
USUAL_FRAME_MS = 100
"""How long browsers show a frame whose duration is below the minimum."""

ORIENTATION_TAG = 0x0112
TRANSPOSITIONS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
SIDEWAYS = (5, 6, 7, 8)
"""Orientations whose transposition exchanges width and height."""

OUTPUT_FORMATS = {"JPEG": "JPEG", "PNG": "PNG", "GIF": "PNG", "WEBP": "WEBP", "AVIF": "WEBP", "HEIF": "JPEG"}
"""The format of the largest rendition by the format of the file. Thumbnails and animations are WebP files."""

SAVE_OPTIONS: dict[str, dict[str, Any]] = {
    "JPEG": {"quality": 85},
    "PNG": {},
    "WEBP": {"quality": 80, "method": 2},
}
BLURHASH_SIDE = 32
WHITE = (255, 255, 255, 255)


class PictureRefused(Exception):
    """The file is not accepted as a picture."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


def limit_resources() -> None:
    """Limits memory, processor time and output. The kernel enforces the limits; only Linux has all of them."""
    if sys.platform == "win32":
        return
    import os
    import resource

    os.nice(5)
    signal.alarm(MAX_WALL_S)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_S, MAX_CPU_S + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_OUTPUT_BYTES, MAX_OUTPUT_BYTES))
    if sys.platform == "linux":
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[0])
        most = pages * resource.getpagesize() + MAX_MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def register_heic() -> None:
    """Lets Pillow read HEIC pictures. Further threads would take address space."""
    pi_heif.register_heif_opener(decode_threads=1, thumbnails=False, depth_images=False, aux_images=False)


def decode(source: BinaryIO, settings: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
    """Returns the header and the encoded renditions of a picture. Raises: PictureRefused; any error of Pillow."""
    image = open_picture(source)
    format_name = "JPEG" if image.format == "MPO" else str(image.format)
    durations = frame_durations(image, format_name) if settings["has_animation"] and is_animated(image) else []
    animation = [(image.size, "WEBP", encode_animation(image, durations))] if durations else []
    orientation = read_orientation(image)
    still = reduce(image, settings["side"], settings["aspect_ratio"], orientation)
    renditions = animation or [encode(still, "WEBP" if settings["is_compact"] else OUTPUT_FORMATS[format_name])]
    for side in [each for each in settings["thumbnail_sides"] if each < max(still.size)]:
        thumbnail = still.copy()
        thumbnail.thumbnail((side, side), Image.Resampling.LANCZOS)
        renditions.append(encode(thumbnail, "WEBP"))
    header = {
        "is_animated": bool(durations),
        "blurhash": hash_of(still),
        "renditions": [
            {"format": name, "width": size[0], "height": size[1], "bytes": len(content)}
            for size, name, content in renditions
        ],
    }
    return header, [content for _, _, content in renditions]


def open_picture(source: BinaryIO) -> Image.Image:
    """Opens a picture by its content, and checks its size before any pixel is decoded."""
    try:
        image = Image.open(source, formats=FORMATS)
    except UnidentifiedImageError:
        raise PictureRefused("NOT_A_PICTURE", "The file is not a JPEG, PNG, GIF, WebP, AVIF or HEIC picture.") from None
    check_size(image)
    return image


def check_size(image: Image.Image) -> None:
    """Raises PictureRefused for a picture that is too wide, too high or has too many pixels for its format."""
    width, height = image.size
    name = "JPEG" if image.format == "MPO" else str(image.format)
    most = MAX_PROGRESSIVE_PIXELS if image.info.get("progressive") else MAX_PIXELS[name]
    if max(width, height) > MAX_SIDE:
        raise PictureRefused(
            "TOO_MANY_PIXELS", f"A side of a picture has at most {MAX_SIDE} pixels, not {max(width, height)}."
        )
    if width * height > most:
        limit = f"{most // 1_000_000} million pixels"
        raise PictureRefused("TOO_MANY_PIXELS", f"A {name} picture has at most {limit}, not {width} × {height}.")


def is_animated(image: Image.Image) -> bool:
    """Tells animations from pictures. The further pictures of an MPO or HEIC file are no frames."""
    return image.format not in ("MPO", "HEIF") and bool(getattr(image, "is_animated", False))


def frame_durations(image: Image.Image, name: str) -> list[int]:
    """Returns each frame's duration in milliseconds. Raises: PictureRefused at the first frame that is too much."""
    durations: list[int] = []
    try:
        while True:
            image.seek(len(durations))
            check_size(image)
            if len(durations) == MAX_FRAMES:
                raise PictureRefused("TOO_MANY_FRAMES", f"An animation has at most {MAX_FRAMES} frames.")
            if (len(durations) + 1) * image.width * image.height > MAX_ANIMATION_PIXELS:
                limit = f"{MAX_ANIMATION_PIXELS // 1_000_000} million pixels"
                raise PictureRefused("TOO_MANY_FRAMES", f"The frames of an animation have at most {limit} together.")
            image.load()
            duration = int(image.info.get("duration", 0))
            durations.append(duration if duration >= MIN_FRAME_MS else USUAL_FRAME_MS)
    except EOFError:
        image.seek(0)
    return durations


def encode_animation(image: Image.Image, durations: Sequence[int]) -> bytes:
    """Returns the animation as a WebP file without metadata."""
    output = io.BytesIO()
    loop = int(image.info.get("loop", 1))
    options = {"quality": 70, "method": 0, "background": (0, 0, 0, 0)}
    image.save(output, "WEBP", save_all=True, duration=list(durations), loop=loop, **options)
    image.seek(0)
    return output.getvalue()


def read_orientation(image: Image.Image) -> int:
    """Returns the orientation of the EXIF data, or 1 (upright) if they are missing or damaged."""
    try:
        value = image.getexif().get(ORIENTATION_TAG, 1)
    except Exception:  # damaged metadata must not make a picture unusable
        return 1
    return value if value in TRANSPOSITIONS else 1


def reduce(image: Image.Image, side: int, aspect_ratio: float | None, orientation: int) -> Image.Image:
    """Decodes the first frame at a reduced size, upright, in sRGB and without metadata."""
    profile = image.info.get("icc_profile")
    kept = kept_size(image, aspect_ratio, orientation)
    scale = min(1.0, side / max(kept))
    image.draft("RGB", (max(1, int(image.width * scale)), max(1, int(image.height * scale))))
    image = convert_for_resizing(image)
    if aspect_ratio is None:
        image.thumbnail((side, side), Image.Resampling.LANCZOS, reducing_gap=2.0)
    else:
        size = max(1, round(kept[0] * scale)), max(1, round(kept[1] * scale))
        image = ImageOps.fit(image, size, Image.Resampling.LANCZOS)
    image = convert_to_srgb(image, profile)
    if orientation in TRANSPOSITIONS:
        image = image.transpose(TRANSPOSITIONS[orientation])
    image.info = {}
    return image


def kept_size(image: Image.Image, aspect_ratio: float | None, orientation: int) -> tuple[float, float]:
    """Returns the size of the largest part with the ratio, before the picture is turned upright."""
    width, height = image.size
    if aspect_ratio is None:
        return width, height
    ratio = 1 / aspect_ratio if orientation in SIDEWAYS else aspect_ratio
    return min(width, height * ratio), min(height, width / ratio)


def convert_for_resizing(image: Image.Image) -> Image.Image:
    """Converts to a mode that can be resized. Colours are multiplied by their opacity once, to save memory."""
    if image.mode.startswith("I"):
        return image.point(lambda value: value / 256).convert("L")
    if image.has_transparency_data:
        return convert(image if image.mode == "RGBA" else convert(image, "RGBA"), "RGBa")
    return image if image.mode in ("L", "RGB", "CMYK") else convert(image, "RGB")


def convert(image: Image.Image, mode: str) -> Image.Image:
    """Converts a picture and frees the memory of the first one at once."""
    converted = image.convert(mode)
    image.close()
    return converted


def convert_to_srgb(image: Image.Image, profile: bytes | None) -> Image.Image:
    """Converts colours to sRGB, so that the picture needs no profile. Ignores a damaged profile."""
    if image.mode == "RGBa":
        image = image.convert("RGBA")
    mode = "RGBA" if image.mode == "RGBA" else "RGB"
    if profile:
        try:
            source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            converted = ImageCms.profileToProfile(image, source, ImageCms.createProfile("sRGB"), outputMode=mode)
        except (ImageCms.PyCMSError, OSError, TypeError, ValueError):
            converted = None
        if converted is not None:
            return converted
    return image.convert(mode)


def encode(image: Image.Image, name: str) -> tuple[tuple[int, int], str, bytes]:
    """Returns the size, the format and the bytes of a still picture."""
    output = io.BytesIO()
    image.save(output, name, **SAVE_OPTIONS[name])
    return image.size, name, output.getvalue()


def hash_of(image: Image.Image) -> str:
    """Returns the blurhash, with 4 by 3 components, of the picture on white."""
    small = image.copy()
    small.thumbnail((BLURHASH_SIDE, BLURHASH_SIDE))
    canvas = Image.new("RGBA", small.size, WHITE)
    canvas.alpha_composite(small.convert("RGBA"))
    rgb = canvas.convert("RGB")
    rows = [[rgb.getpixel((x, y)) for x in range(rgb.width)] for y in range(rgb.height)]
    return str(blurhash.encode(rows, 4, 3))


def answer(source: BinaryIO, settings: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
    """Returns the header and the renditions, or a header with the reason of a refusal."""
    try:
        header, contents = decode(source, settings)
        if sum(map(len, contents)) > MAX_OUTPUT_BYTES - 100_000:
            raise PictureRefused("TOO_MANY_BYTES", "The picture is too large after decoding. Send a smaller one.")
    except PictureRefused as refused:
        return {"reason": refused.reason, "message": refused.message}, []
    except Image.DecompressionBombError:
        return {"reason": "TOO_MANY_PIXELS", "message": "The picture has too many pixels. Send a smaller one."}, []
    except MemoryError:
        return {"reason": "NEEDS_TOO_MUCH_MEMORY", "message": "The picture is too large. Send a smaller one."}, []
    except Exception:  # Pillow raises errors of many classes for damaged files
        return {"reason": "BROKEN", "message": "The picture is damaged or incomplete."}, []
    return header, contents


def main() -> None:
    """Decodes the picture of standard input with the settings of the first argument."""
    warnings.simplefilter("ignore")
    Image.MAX_IMAGE_PIXELS = max(MAX_PIXELS.values())
    AvifImagePlugin.DEFAULT_MAX_THREADS = 1
    register_heic()
    limit_resources()
    header, contents = answer(sys.stdin.buffer, json.loads(sys.argv[1]))
    sys.stdout.buffer.write(json.dumps(header).encode() + b"\n")
    sys.stdout.buffer.writelines(contents)


if __name__ == "__main__":
    main()
