"""Decoded pictures: what a decoder makes of the bytes of an uploaded picture.

A decoder reads bytes that may be hostile, so it runs in a process of its own. Only what it has encoded anew is served
as a picture. It carries no metadata of the upload, such as the place where a photograph was taken.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

MAX_PICTURE_BYTES = 48 * 1024 * 1024
"""Greatest size of an uploaded picture. A greater one is refused, since it would keep the place where it was taken."""


class FileRefusal(Enum):
    """Why an uploaded file was refused. The value is stored."""

    UNREADABLE = "UNREADABLE"
    """The bytes begin like a picture, but no decoder can read them."""

    TOO_MANY_PIXELS = "TOO_MANY_PIXELS"
    """The picture has more pixels than allowed."""

    TOO_SLOW = "TOO_SLOW"
    """The picture took too long, or too much memory, to decode."""


@dataclass(frozen=True, slots=True)
class EncodedPicture:
    """A picture that the decoder has encoded anew, without metadata."""

    content_type: str
    width: int
    height: int
    data: bytes


@dataclass(frozen=True, slots=True)
class DecodedPicture:
    """A picture that was decoded, turned upright and encoded again, so that only its pixels are left."""

    picture: EncodedPicture
    thumbnails: Sequence[EncodedPicture]
    """Smaller versions, the smallest first; none for a picture that is small itself."""

    blurhash: str
    is_animated: bool = False
