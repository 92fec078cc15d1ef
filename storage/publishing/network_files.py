"""Files as media of networks: the types and sizes that each network takes, and a file's kind. Pure; no I/O.

Sources: the networks' documentation as of 2026-11; docs/publishing.md names the pages.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from storage.errors import BadUserInput
from storage.files.documents import AttachmentDocument
from storage.publishing.documents import MediaDocument, TargetDocument
from storage.publishing.networks import POST_LIMITS, MediaKind, Network, limit_violation

IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/webp"})
"""Types of decoded pictures. No other file is an image."""

VIDEO_TYPES = frozenset({"video/mp4", "video/quicktime", "video/webm"})
MAX_IMAGE_BYTES = 16 * 1024 * 1024
MAX_VIDEO_BYTES = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class NetworkFileLimits:
    """Limits of each file at a network."""

    image_types: frozenset[str] = IMAGE_TYPES
    video_types: frozenset[str] = VIDEO_TYPES
    max_image_bytes: int = MAX_IMAGE_BYTES
    max_video_bytes: int = MAX_VIDEO_BYTES
    max_alt_chars: int | None = None
    """None: the limit of all alternative texts is enough."""

    is_fetched: bool = False
    """Whether the network fetches files from this server, by an address."""


FILE_LIMITS = {
    Network.MASTODON: NetworkFileLimits(),
    Network.INSTAGRAM: NetworkFileLimits(
        frozenset({"image/jpeg"}),
        frozenset({"video/mp4", "video/quicktime"}),
        8_000_000,
        300_000_000,
        max_alt_chars=1000,
        is_fetched=True,
    ),
    Network.BLUESKY: NetworkFileLimits(IMAGE_TYPES, frozenset({"video/mp4"}), 1_000_000, 50_000_000),
    Network.X: NetworkFileLimits(IMAGE_TYPES, VIDEO_TYPES, 5_000_000, 512_000_000, max_alt_chars=1000),
    Network.WEBHOOK: NetworkFileLimits(is_fetched=True),
    Network.SANDBOX: NetworkFileLimits(),
}


def file_kinds(network: Network, types: Sequence[str], other_media: int) -> list[MediaKind]:
    """Returns the kind of each file of a post by its content type. Anything but an image counts as a video.

    `other_media` is the number of the post's other media. At Instagram, a single video is a reel.
    """
    is_single = len(types) + other_media == 1
    video = MediaKind.REEL if network is Network.INSTAGRAM and is_single else MediaKind.VIDEO
    return [MediaKind.IMAGE if each in IMAGE_TYPES else video for each in types]


def check_files(
    targets: Iterable[TargetDocument], text: str, media: Sequence[MediaDocument], files: Sequence[AttachmentDocument]
) -> None:
    """Checks a post with files against the limits of the networks among its targets.

    Raises: BadUserInput, whose field is `text`, `attachments` or one of the files.
    """
    networks = dict.fromkeys(Network(each["network"]) for each in targets if each["kind"] == "ACCOUNT")
    for network in networks if files else ():
        violation = _violation(network, text, media, files)
        if violation is not None:
            field, expected = violation
            raise BadUserInput(field, f"{expected} (for {network.value})")


def _violation(
    network: Network, text: str, media: Sequence[MediaDocument], files: Sequence[AttachmentDocument]
) -> tuple[str, str] | None:
    limits = FILE_LIMITS[network]
    for index, file in enumerate(files):
        field = f"attachments[{index}]"
        if (expected := _expected_file(limits, file)) is not None:
            return field, expected
        if limits.max_alt_chars is not None and len(file.get("alt", "")) > limits.max_alt_chars:
            return f"{field}.altText", f"at most {limits.max_alt_chars} characters"
    kinds = [MediaKind(each["kind"]) for each in media]
    kinds += file_kinds(network, [each["type"] for each in files], len(media))
    violation = limit_violation(POST_LIMITS[network], text, kinds)
    return ("attachments", violation[1]) if violation is not None and violation[0] == "media" else violation


def _expected_file(limits: NetworkFileLimits, file: AttachmentDocument) -> str | None:
    """Returns which file was expected, or None if the network takes the file."""
    type_, size = file["type"], file["size"]
    is_picture = "width" in file
    if type_ not in (limits.image_types if is_picture else limits.video_types):
        types = ", ".join(sorted(limits.image_types | limits.video_types))
        return f"a file of the type {types}, not {type_ or 'an unknown one'}"
    max_bytes = limits.max_image_bytes if is_picture else limits.max_video_bytes
    return f"at most {max_bytes} bytes, not {size}" if size > max_bytes else None
