"""Every request of the clients, as it arrives at the twins, has the documented fields, and no others.

OAuth's requests are compared by the twins themselves (tests/twins/oauth.py).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from jobs.providers.social.bluesky import Bluesky
from jobs.providers.social.bluesky_video import VideoService
from jobs.providers.social.http import HttpClient
from jobs.providers.social.instagram import Instagram
from jobs.providers.social.mastodon import Mastodon
from jobs.providers.social.network import SocialNetwork
from jobs.providers.social.x import X
from storage.publishing.networks import MediaKind, Network
from storage.publishing.records import ScheduledMedia
from tests.jobs.providers.social import documented
from tests.jobs.providers.social.documented import DocumentedRequest
from tests.jobs.providers.social.outgoing import DUE_AT, account, medium, outgoing
from tests.jobs.providers.stub_server import StubServer
from tests.jobs.publishing.runs import SECRETS, TWINS
from tests.twins.sent_requests import SentRequest
from tests.twins.twin import NetworkTwin, running_twin
from tests.twins.x import XTwin

pytestmark = pytest.mark.anyio

TEXT = "The beacon is lit: https://example.org/"

BLOB = ("$type", "ref.$link", "mimeType", "size")
RECORD = {"repo", "collection", "rkey", "record.$type", "record.text", "record.createdAt"}
FACET = {f"record.facets[].index.{name}" for name in ("byteStart", "byteEnd")}
FACET |= {f"record.facets[].features[].{name}" for name in ("$type", "uri")}
IMAGES = {"record.embed.$type", "record.embed.images[].alt", *(f"record.embed.images[].image.{name}" for name in BLOB)}
VIDEO = {"record.embed.$type", "record.embed.alt", *(f"record.embed.video.{name}" for name in BLOB)}
SESSION = ("createSession", {"identifier", "password"})


@dataclass(frozen=True)
class Case:
    """A post, and what its requests must hold: the end of each path, and exactly these fields."""

    network: Network
    media: Sequence[str]
    sent: Sequence[tuple[str, set[str]]]


CONTAINER = ("c1", {"fields"})
QUOTA = ("content_publishing_limit", {"fields"})
PUBLISHED = [QUOTA, ("media_publish", {"creation_id"}), ("/2", {"fields"})]
X_IMAGE = [
    ("initialize", {"media_type", "total_bytes", "media_category"}),
    ("append", {"segment_index", "media"}),
    ("finalize", set[str]()),
    ("metadata", {"id", "metadata.alt_text.text"}),
]

CASES = {
    "X text": Case(Network.X, [], [("tweets", {"text"})]),
    "X image": Case(Network.X, ["IMAGE"], [*X_IMAGE, ("tweets", {"text", "media.media_ids[]"})]),
    "X video": Case(
        Network.X,
        ["VIDEO"],
        [
            X_IMAGE[0],
            *[X_IMAGE[1]] * 3,
            X_IMAGE[2],
            *[("upload", {"command", "media_id"})] * 2,
            X_IMAGE[3],
            ("tweets", {"text", "media.media_ids[]"}),
        ],
    ),
    "Instagram image": Case(
        Network.INSTAGRAM, ["IMAGE"], [("media", {"image_url", "alt_text", "caption"}), CONTAINER, *PUBLISHED]
    ),
    "Instagram reel": Case(
        Network.INSTAGRAM, ["REEL"], [("media", {"video_url", "media_type", "caption"}), CONTAINER, *PUBLISHED]
    ),
    "Instagram carousel": Case(
        Network.INSTAGRAM,
        ["IMAGE", "VIDEO"],
        [
            ("media", {"image_url", "alt_text", "is_carousel_item"}),
            CONTAINER,
            ("media", {"video_url", "media_type", "is_carousel_item"}),
            ("c2", {"fields"}),
            ("media", {"media_type", "children", "caption"}),
            ("c3", {"fields"}),
            QUOTA,
            ("media_publish", {"creation_id"}),
            ("/4", {"fields"}),
        ],
    ),
    "Mastodon text": Case(Network.MASTODON, [], [("statuses", {"status"})]),
    "Mastodon image": Case(
        Network.MASTODON,
        ["IMAGE"],
        [("v2/media", {"file", "description"}), ("media/m1", set()), ("statuses", {"status", "media_ids[]"})],
    ),
    "Bluesky text": Case(Network.BLUESKY, [], [SESSION, ("putRecord", RECORD | FACET)]),
    "Bluesky image": Case(
        Network.BLUESKY, ["IMAGE"], [SESSION, ("uploadBlob", set()), ("putRecord", RECORD | FACET | IMAGES)]
    ),
    "Bluesky video": Case(
        Network.BLUESKY,
        ["VIDEO"],
        [
            SESSION,
            ("getServiceAuth", {"aud", "lxm", "exp"}),
            ("uploadVideo", {"did", "name"}),
            *[("getJobStatus", {"jobId"})] * 2,
            ("putRecord", RECORD | FACET | VIDEO),
        ],
    ),
}
VERIFICATIONS = {
    Network.X: ("users/me", set[str]()),
    Network.INSTAGRAM: ("/me", {"fields"}),
    Network.MASTODON: ("verify_credentials", set[str]()),
    Network.BLUESKY: SESSION,
}
DOCUMENTED: dict[Network, Sequence[DocumentedRequest]] = {
    Network.X: documented.X,
    Network.INSTAGRAM: documented.INSTAGRAM,
    Network.MASTODON: documented.MASTODON,
    Network.BLUESKY: documented.BLUESKY,
}
CLIENTS: dict[Network, Callable[[HttpClient, str], SocialNetwork]] = {
    Network.X: lambda http, _: X(http, max_poll_s=0.01),
    Network.INSTAGRAM: lambda http, _: Instagram(http, poll_s=0.01),
    Network.MASTODON: lambda http, _: Mastodon(http, poll_s=0.01),
    Network.BLUESKY: lambda http, url: Bluesky(http, VideoService(http, url, poll_s=0.01)),
}


def media_of(kinds: Sequence[str], server: StubServer) -> list[ScheduledMedia]:
    """Returns media of these kinds with an alternative text."""
    return [medium(server.url("/a.png" if kind == "IMAGE" else "/b.mp4"), MediaKind(kind)) for kind in kinds]


def check(sent: Sequence[SentRequest], network: Network, expected: Sequence[tuple[str, set[str]]]) -> None:
    """Compares requests with what is expected of this post, and with the documentation."""
    assert [each.names for each in sent] == [names for _, names in expected]
    for request, (end, _) in zip(sent, expected, strict=True):
        assert request.path.endswith(end)
        page = next(each for each in DOCUMENTED[network] if each.matches(request))
        page.check(request)


def begin(twin: NetworkTwin) -> list[SentRequest]:
    """Lets the twin collect its requests."""
    sent: list[SentRequest] = []
    twin.sent = sent
    return sent


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_publishing_requests_are_documented(case: Case, http: HttpClient, media: StubServer) -> None:
    async with running_twin(TWINS[case.network]()) as twin:
        sent = begin(twin)
        if isinstance(twin, XTwin) and "VIDEO" in case.media:
            twin.polls_until_ready = 2
        client, owner = CLIENTS[case.network](http, twin.url), account(twin, SECRETS[case.network])
        post = outgoing(TEXT, *media_of(case.media, media))
        references = (await client.upload(owner, post)).references if case.media else ()
        await client.publish(owner, post, client.new_key("pub1", DUE_AT), references)
        check(sent, case.network, case.sent)


@pytest.mark.parametrize("network", VERIFICATIONS, ids=lambda network: network.value)
async def test_verifying_requests_are_documented(network: Network, http: HttpClient) -> None:
    async with running_twin(TWINS[network]()) as twin:
        sent = begin(twin)
        await CLIENTS[network](http, twin.url).verify(account(twin, SECRETS[network]))
        check(sent, network, [VERIFICATIONS[network]])


async def test_container_is_queried_as_documented(http: HttpClient) -> None:
    """After a lost response, only Instagram is queried."""
    async with running_twin(TWINS[Network.INSTAGRAM]()) as twin:
        owner, client = account(twin, SECRETS[Network.INSTAGRAM]), Instagram(http, poll_s=0.01)
        post = outgoing(TEXT, medium("https://example.org/a.png"))
        references = (await client.upload(owner, post)).references
        await client.publish(owner, post, "key", references)
        sent = begin(twin)
        await client.look_up(owner, references)
        check(sent, Network.INSTAGRAM, [CONTAINER])
