"""Sizes of the renditions that are made of a picture, and reasons for refusing a file as a picture."""

from dataclasses import dataclass
from enum import StrEnum


class PictureRefusalReason(StrEnum):
    """Why a file is not accepted as a picture."""

    NOT_A_PICTURE = "NOT_A_PICTURE"
    TOO_MANY_BYTES = "TOO_MANY_BYTES"
    TOO_MANY_PIXELS = "TOO_MANY_PIXELS"
    TOO_MANY_FRAMES = "TOO_MANY_FRAMES"
    NEEDS_TOO_MUCH_MEMORY = "NEEDS_TOO_MUCH_MEMORY"
    BROKEN = "BROKEN"
    TOOK_TOO_LONG = "TOOK_TOO_LONG"
    DECODER_ENDED = "DECODER_ENDED"
    """The decoder was killed, crashed or gave an unusable answer. The same picture may be decoded on another try."""


@dataclass(frozen=True, slots=True)
class RefusedPicture:
    """A file that is not accepted as a picture. `message` is a sentence for the person who sent it."""

    reason: PictureRefusalReason
    message: str


@dataclass(frozen=True, slots=True)
class RenditionSettings:
    """The renditions that are made of a picture. A picture is never enlarged."""

    side: int
    """The longest side of the picture in pixels."""

    thumbnail_sides: tuple[int, ...] = ()
    """The longest side of each thumbnail in pixels, in ascending order. Larger ones than the picture are left out."""

    aspect_ratio: float | None = None
    """Cuts the middle of the picture to this ratio of width to height. None keeps the proportions."""

    is_compact: bool = False
    """Encodes every still picture as WebP, which takes the fewest bytes."""

    has_animation: bool = False
    """Keeps all frames of an animation with their durations, in the original size. Otherwise only the first is kept."""


ATTACHMENT = RenditionSettings(side=2048, thumbnail_sides=(320, 960), has_animation=True)
AVATAR = RenditionSettings(side=512, thumbnail_sides=(192,), aspect_ratio=1)
BANNER = RenditionSettings(side=1500, aspect_ratio=3, is_compact=True)
STAMP = RenditionSettings(side=320, thumbnail_sides=(64,))
PREVIEW = RenditionSettings(side=640, is_compact=True)
