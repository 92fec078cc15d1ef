"""The picture decoder with real and hostile files, and what happens when its process ends."""

import asyncio
import io
import os
import signal
from collections.abc import AsyncIterator
from itertools import chain
from pathlib import Path

import pytest
from PIL import Image, ImageCms

from jobs.pictures.decoder import PROGRAM, PictureDecoder
from jobs.pictures.results import ATTACHMENT, AVATAR, BANNER, PREVIEW, PictureRefusalReason, RenditionSettings
from storage.files.pictures import MAX_PICTURE_BYTES, DecodedPicture, EncodedPicture
from tests.jobs.pictures.hostile_files import (
    animation,
    encoded,
    gps_exif,
    gradient,
    png_bomb,
    repeated_gif,
    slow_picture,
)
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio

PHONE_PICTURE = Path(__file__).with_name("phone.heic").read_bytes()
"""A HEIC picture with a description and a place, which is red at the top and turned by 90 degrees."""


async def decoded(content: bytes, settings: RenditionSettings = ATTACHMENT) -> DecodedPicture:
    result = await PictureDecoder().decode(content, settings)
    assert isinstance(result, DecodedPicture), result
    return result


async def pieces(*contents: bytes) -> AsyncIterator[bytes]:
    for each in contents:
        yield each


async def refused(content: bytes | AsyncIterator[bytes]) -> PictureRefusalReason:
    result = await PictureDecoder().decode(content, ATTACHMENT)
    assert not isinstance(result, DecodedPicture)
    assert result.message.endswith(".")
    return result.reason


def opened(rendition: EncodedPicture) -> Image.Image:
    image = Image.open(io.BytesIO(rendition.data))
    image.load()
    assert image.size == (rendition.width, rendition.height)
    assert image.get_format_mimetype() == rendition.content_type
    return image


def decoder_processes() -> list[int]:
    """Returns the ids of this process's decoders."""
    children = [file.read_text().split() for file in Path("/proc/self/task").glob("*/children")]
    return [int(process_id) for process_id in chain(*children) if is_decoder(process_id)]


def is_decoder(process_id: str) -> bool:
    try:
        return str(PROGRAM) in Path(f"/proc/{process_id}/cmdline").read_text()
    except OSError:
        return False


@pytest.mark.parametrize("name", ["JPEG", "PNG", "GIF", "WEBP", "AVIF"])
async def test_picture_of_each_format_gets_thumbnails(name: str) -> None:
    result = await decoded(encoded(gradient(1200, 600), name))
    assert opened(result.picture).size == (1200, 600)
    assert not result.is_animated
    assert [(opened(each).size) for each in result.thumbnails] == [(320, 160), (960, 480)]
    red, green, blue = opened(result.thumbnails[0]).convert("RGB").getpixel((160, 5))  # type: ignore[misc]
    assert red > 230
    assert green < 60
    assert blue < 100
    assert len(result.blurhash) == 28


async def test_metadata_is_stripped_and_orientation_applied() -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    options = {"exif": gps_exif(6), "icc_profile": profile, "xmp": b"<x:xmpmeta>Secret", "comment": b"Secret"}
    result = await decoded(encoded(gradient(400, 200), "JPEG", **options))
    assert (result.picture.width, result.picture.height) == (200, 400)
    for rendition in (result.picture, *result.thumbnails):
        image = opened(rendition)
        assert not dict(image.getexif())
        assert not image.info.keys() & {"exif", "icc_profile", "xmp", "comment", "gps"}
        assert b"Secret" not in rendition.data
    upright = opened(result.picture)
    assert upright.getpixel((190, 200))[0] > 200 > 60 > upright.getpixel((10, 200))[0]  # type: ignore[index]


async def test_comment_of_a_jpeg_picture_is_stripped() -> None:
    picture = encoded(gradient(40, 20), "JPEG", comment=b"Secret")
    assert b"Secret" in picture
    assert b"Secret" not in (await decoded(picture)).picture.data


@pytest.mark.parametrize("name", ["PNG", "WEBP", "AVIF"])
async def test_metadata_of_other_formats_is_stripped(name: str) -> None:
    options: dict[str, object] = {"exif": gps_exif(3), "xmp": b"<x:xmpmeta>Secret"}
    result = await decoded(encoded(gradient(40, 20), name, **options))
    for rendition in (result.picture, *result.thumbnails):
        assert b"Secret" not in rendition.data
        assert not dict(opened(rendition).getexif())


async def test_transparent_picture_stays_transparent() -> None:
    picture = Image.new("RGBA", (60, 30), (255, 0, 0, 0))
    picture.paste((0, 0, 255, 255), (0, 0, 30, 30))
    result = await decoded(encoded(picture, "PNG"))
    image = opened(result.picture)
    assert image.getpixel((5, 5)) == (0, 0, 255, 255)
    assert image.getpixel((50, 5))[3] == 0  # type: ignore[index]


async def test_grey_picture_with_sixteen_bits_keeps_its_tones() -> None:
    result = await decoded(encoded(Image.new("I;16", (8, 8), 0x8000), "PNG"))
    assert opened(result.picture).getpixel((4, 4)) == (128, 128, 128)


async def test_avatar_is_the_middle_square() -> None:
    picture = Image.new("RGB", (900, 300), "red")
    picture.paste("blue", (300, 0, 600, 300))
    result = await decoded(encoded(picture, "PNG"), AVATAR)
    assert (result.picture.width, result.picture.height) == (300, 300)
    assert [each.width for each in result.thumbnails] == [192]
    assert opened(result.picture).getpixel((2, 150)) == (0, 0, 255)


@pytest.mark.parametrize(
    ("size", "expected"),
    [((3000, 2000), (1500, 500)), ((900, 100), (300, 100)), ((90, 900), (90, 30)), ((1, 1), (1, 1))],
)
async def test_banner_is_the_middle_of_three_to_one(size: tuple[int, int], expected: tuple[int, int]) -> None:
    result = await decoded(encoded(Image.new("RGB", size, "red"), "PNG"), BANNER)
    assert (result.picture.width, result.picture.height) == expected
    assert (result.picture.content_type, result.thumbnails) == ("image/webp", [])


@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
async def test_banner_is_cut_as_people_see_it(orientation: int) -> None:
    """A phone stores a photograph as it holds it, and says how to turn it."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    result = await decoded(encoded(Image.new("RGB", (600, 900), "red"), "JPEG", exif=exif), BANNER)
    width = 600 if orientation in (1, 3) else 900
    assert (result.picture.width, result.picture.height) == (width, width // 3)


@pytest.mark.parametrize("name", ["GIF", "WEBP", "PNG"])
async def test_animation_is_kept_for_attachments_only(name: str) -> None:
    content = animation(name, 5, duration=[40, 0, 40, 40, 40], loop=2)
    result = await decoded(content)
    assert result.is_animated
    image = opened(result.picture)
    assert getattr(image, "n_frames", 1) == 5
    still = await decoded(content, PREVIEW)
    assert getattr(opened(still.picture), "n_frames", 1) == 1
    assert not still.is_animated


async def test_large_jpeg_is_reduced() -> None:
    result = await decoded(encoded(Image.new("RGB", (6000, 5000), "green"), "JPEG"), PREVIEW)
    assert (result.picture.width, result.picture.height) == (640, 533)


async def test_cmyk_and_phone_pictures_are_accepted() -> None:
    printed = await decoded(encoded(gradient(50, 40).convert("CMYK"), "JPEG"))
    assert printed.picture.content_type == "image/jpeg"
    phone = encoded(gradient(50, 40), "MPO", save_all=True, append_images=[gradient(50, 40)])
    result = await decoded(phone)
    assert (result.picture.content_type, result.is_animated) == ("image/jpeg", False)


async def test_heic_picture_loses_metadata() -> None:
    assert b"Secret description" in PHONE_PICTURE
    result = await decoded(PHONE_PICTURE)
    image = opened(result.picture)
    assert (result.picture.content_type, image.size, result.is_animated) == ("image/jpeg", (48, 64), False)
    assert image.getpixel((45, 32))[0] > 200 > 60 > image.getpixel((2, 32))[0]  # type: ignore[index]
    assert b"Secret" not in result.picture.data
    assert not dict(image.getexif())


# Hostile files


async def test_polyglot_loses_its_other_half() -> None:
    script = b"*/=1;alert(document.domain)//"
    result = await decoded(encoded(gradient(20, 20), "GIF") + script)
    assert script not in result.picture.data
    result = await decoded(encoded(gradient(20, 20), "PNG") + b"PK\x03\x04archive")
    assert b"PK\x03\x04" not in result.picture.data


async def test_pieces_of_a_file_are_put_together() -> None:
    content = encoded(gradient(30, 30), "PNG")
    result = await PictureDecoder().decode(pieces(content[:100], content[100:]), ATTACHMENT)
    assert isinstance(result, DecodedPicture)
    assert result.picture.content_type == "image/png"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"GIF89a",
        b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
        b"<!DOCTYPE html><script>alert(1)</script>",
        b"%PDF-1.7\n",
        encoded(gradient(5, 5), "TIFF"),
        encoded(gradient(5, 5), "ICO"),
        encoded(gradient(5, 5), "BMP"),
    ],
)
async def test_other_files_are_refused(content: bytes) -> None:
    assert await refused(content) == PictureRefusalReason.NOT_A_PICTURE


@pytest.mark.parametrize(("width", "height"), [(12_000, 12_000), (1, 65_535), (16_384, 1), (5_000, 3_001)])
async def test_picture_with_too_many_pixels_is_refused(width: int, height: int) -> None:
    assert await refused(png_bomb(width, height)) == PictureRefusalReason.TOO_MANY_PIXELS


async def test_progressive_jpeg_has_a_lower_limit() -> None:
    picture = encoded(Image.new("L", (4200, 3000)), "JPEG", progressive=True)
    assert await refused(picture) == PictureRefusalReason.TOO_MANY_PIXELS


async def test_animation_with_too_many_frames_is_refused() -> None:
    assert await refused(animation("GIF", 301, 2, 2)) == PictureRefusalReason.TOO_MANY_FRAMES
    assert await refused(repeated_gif(50_000, 2, 2)[:-1]) == PictureRefusalReason.TOO_MANY_FRAMES
    assert await refused(repeated_gif(16, 2000, 2000)) == PictureRefusalReason.TOO_MANY_FRAMES


async def test_heic_picture_with_too_many_pixels_is_refused() -> None:
    bomb = Path(__file__).with_name("large.heic").read_bytes()
    assert await refused(bomb) == PictureRefusalReason.TOO_MANY_PIXELS


@pytest.mark.parametrize("length", [40, 200, 400, 600])
async def test_incomplete_heic_picture_is_refused(length: int) -> None:
    reasons = (PictureRefusalReason.NOT_A_PICTURE, PictureRefusalReason.BROKEN)
    assert await refused(PHONE_PICTURE[:length]) in reasons


async def test_incomplete_picture_is_refused() -> None:
    for name in ("JPEG", "PNG", "GIF", "WEBP"):
        content = encoded(gradient(600, 600), name)
        assert await refused(content[: len(content) * 2 // 3]) == PictureRefusalReason.BROKEN, name


async def test_file_with_too_many_bytes_is_refused() -> None:
    assert await refused(pieces(bytes(MAX_PICTURE_BYTES), b"x")) == PictureRefusalReason.TOO_MANY_BYTES


# The process


async def test_killed_decoder_refuses_the_picture_and_harms_nothing() -> None:
    decoder = PictureDecoder()
    task = asyncio.create_task(decoder.decode(slow_picture(), ATTACHMENT))
    (process_id,) = await poll_until_true(decoder_processes)
    os.kill(process_id, signal.SIGKILL)
    result = await task
    assert not isinstance(result, DecodedPicture)
    assert result.reason == PictureRefusalReason.DECODER_ENDED
    assert isinstance(await decoder.decode(encoded(gradient(9, 9), "PNG"), PREVIEW), DecodedPicture)


async def test_stopped_decoder_is_killed_after_the_time_limit() -> None:
    task = asyncio.create_task(PictureDecoder(max_wall_s=1.0).decode(slow_picture(), ATTACHMENT))
    (process_id,) = await poll_until_true(decoder_processes)
    os.kill(process_id, signal.SIGSTOP)
    result = await task
    assert not isinstance(result, DecodedPicture)
    assert result.reason == PictureRefusalReason.TOOK_TOO_LONG
    assert decoder_processes() == []


async def test_cancelled_decoding_leaves_no_process() -> None:
    task = asyncio.create_task(PictureDecoder().decode(slow_picture(), ATTACHMENT))
    await poll_until_true(decoder_processes)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert decoder_processes() == []


async def test_decoder_runs_one_process_at_a_time() -> None:
    decoder = PictureDecoder()
    picture = repeated_gif(20, 200, 200)
    tasks = [asyncio.create_task(decoder.decode(picture, ATTACHMENT)) for _ in range(3)]
    most = 0
    while not all(task.done() for task in tasks):
        most = max(most, len(decoder_processes()))
        await asyncio.sleep(0.005)
    assert most == 1


async def test_decoder_has_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOROSHI_SECRET", "a secret of the worker")
    task = asyncio.create_task(PictureDecoder().decode(slow_picture(), ATTACHMENT))
    (process_id,) = await poll_until_true(decoder_processes)
    environment = Path(f"/proc/{process_id}/environ").read_bytes()
    assert environment.split(b"\0")[:-1] == [b"MALLOC_ARENA_MAX=1"]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"[]",
        b'{"renditions": []}\n',
        b'{"reason": "SOMETHING", "message": "x"}\n',
        b'{"is_animated": false, "blurhash": "x",'
        b' "renditions": [{"format": "HTML", "width": 1, "height": 1, "bytes": 1}]}\nx',
        b'{"is_animated": false, "blurhash": "x",'
        b' "renditions": [{"format": "PNG", "width": 1, "height": 1, "bytes": 5}]}\nx',
    ],
)
async def test_answer_of_a_hijacked_decoder_is_refused(
    answer: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"import sys\nsys.stdout.buffer.write({answer!r})")
    monkeypatch.setattr("jobs.pictures.decoder.PROGRAM", program)
    assert await refused(b"x") == PictureRefusalReason.DECODER_ENDED
