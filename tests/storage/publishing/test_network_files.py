"""Files as media of networks: kinds, types, sizes, counts and alternative texts, and the field that an error names."""

from collections.abc import Sequence

import pytest

from storage.errors import BadUserInput
from storage.files.documents import AttachmentDocument
from storage.publishing.documents import MediaDocument, TargetDocument
from storage.publishing.network_files import FILE_LIMITS, check_files, file_kinds
from storage.publishing.networks import MediaKind, Network

IMG, VID, REEL = MediaKind.IMAGE, MediaKind.VIDEO, MediaKind.REEL


def file(type_: str = "image/jpeg", size: int = 1000, alt: str = "A hill") -> AttachmentDocument:
    document: AttachmentDocument = {"id": "f", "name": "a", "type": type_, "size": size, "alt": alt}
    if type_.startswith("image/"):
        document |= {"width": 30, "height": 20}
    return document


def target(network: Network | None) -> TargetDocument:
    if network is None:
        return {"kind": "TOPIC", "id": "t", "community": "c"}
    return {"kind": "ACCOUNT", "id": "a", "network": network.value}


def check(
    network: Network | None, *files: AttachmentDocument, text: str = "", media: Sequence[MediaDocument] = ()
) -> object:
    """Returns None, or the field that the refusal names."""
    try:
        check_files([target(network)], text, media, files)
    except BadUserInput as refusal:
        return refusal.details["field"]
    return None


def test_refusal_names_the_network() -> None:
    with pytest.raises(BadUserInput, match=r"at most 1000000 bytes, not 1000001 \(for BLUESKY\)"):
        check_files([target(Network.BLUESKY)], "", [], [file(size=1_000_001)])


@pytest.mark.parametrize("network", Network)
def test_network_takes_one_picture_or_one_video(network: Network) -> None:
    assert check(network, file()) is None
    assert check(network, file("video/mp4")) is None


@pytest.mark.parametrize("network", Network)
@pytest.mark.parametrize("type_", ["application/pdf", "text/plain", "audio/mpeg", "", "image/svg+xml"])
def test_file_that_is_no_picture_or_video_is_refused(network: Network, type_: str) -> None:
    assert check(network, file(), file(type_)) == "attachments[1]"


@pytest.mark.parametrize(
    ("network", "refused"),
    [(Network.INSTAGRAM, "image/png"), (Network.BLUESKY, "video/webm"), (Network.INSTAGRAM, "video/webm")],
)
def test_type_that_only_some_networks_take_is_refused(network: Network, refused: str) -> None:
    assert check(network, file(refused)) == "attachments[0]"
    assert check(Network.MASTODON, file(refused)) is None


@pytest.mark.parametrize("network", Network)
def test_file_above_the_size_limit_is_refused(network: Network) -> None:
    limits = FILE_LIMITS[network]
    for type_, most in (("image/jpeg", limits.max_image_bytes), ("video/mp4", limits.max_video_bytes)):
        assert check(network, file(type_, most)) is None
        assert check(network, file(type_, most + 1)) == "attachments[0]"


def test_long_alternative_text_is_refused_with_its_field() -> None:
    for network in (Network.X, Network.INSTAGRAM):
        assert check(network, file(alt="x" * 1000)) is None
        assert check(network, file(), file(alt="x" * 1001)) == "attachments[1].altText"
    assert check(Network.MASTODON, file(alt="x" * 1500)) is None


def test_files_and_media_count_together() -> None:
    media: list[MediaDocument] = [{"url": "https://example.org/a.png", "alt": "", "kind": "IMAGE"}]
    assert check(Network.MASTODON, *[file()] * 3, media=media) is None
    assert check(Network.MASTODON, *[file()] * 4, media=media) == "attachments"
    assert check(Network.X, file("video/mp4"), media=media) == "attachments"


def test_text_limit_applies_with_files() -> None:
    assert check(Network.X, file(), text="x" * 280) is None
    assert check(Network.X, file(), text="x" * 281) == "text"


def test_topic_takes_any_file_and_no_file_is_not_checked() -> None:
    assert check(None, file("application/pdf")) is None
    assert check(Network.INSTAGRAM, text="x" * 9999) is None


def test_single_video_is_a_reel_at_instagram_only() -> None:
    assert file_kinds(Network.INSTAGRAM, ["video/mp4"], 0) == [REEL]
    assert file_kinds(Network.INSTAGRAM, ["video/mp4"], 1) == [VID]
    assert file_kinds(Network.INSTAGRAM, ["image/jpeg", "video/mp4"], 0) == [IMG, VID]
    assert file_kinds(Network.X, ["video/mp4"], 0) == [VID]
