"""Gives the demo's people and communities their avatars, pictures and banners, through the public API."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from server.demo.cast import COMMUNITIES, DemoUser, user
from server.demo.drawings import AVATARS, BANNERS, COMMUNITY_BANNERS, COMMUNITY_PICTURES, Drawing, draw
from server.demo.uploads import DemoApi, becomes_ready, upload


@dataclass(frozen=True, slots=True)
class PictureKind:
    """The purpose of an upload, and the operations that read and choose the picture."""

    purpose: str
    shown: str
    choose: str


AVATAR = PictureKind(
    "AVATAR",
    "query OwnAvatar { shown: viewer { url: avatarUrl } }",
    "mutation SetAvatar($file: ID!) { setAvatar(uploadId: $file) { id } }",
)
BANNER = PictureKind(
    "BANNER",
    "query OwnBanner { shown: viewer { url: bannerUrl } }",
    "mutation SetBanner($file: ID!) { setBanner(uploadId: $file) { id } }",
)
COMMUNITY_PICTURE = PictureKind(
    "AVATAR",
    "query CommunityPicture($id: ID!) { shown: community(id: $id) { url: pictureUrl } }",
    "mutation SetCommunityPicture($id: ID!, $file: ID!) "
    "{ setCommunityPicture(communityId: $id, uploadId: $file) { id } }",
)
COMMUNITY_BANNER = PictureKind(
    "BANNER",
    "query CommunityBanner($id: ID!) { shown: community(id: $id) { url: bannerUrl } }",
    "mutation SetCommunityBanner($id: ID!, $file: ID!) "
    "{ setCommunityBanner(communityId: $id, uploadId: $file) { id } }",
)


@dataclass(frozen=True, slots=True)
class ChosenPicture:
    """A picture of a person, or of a community that the person owns. `subject` names the community in variables."""

    kind: PictureKind
    owner: DemoUser
    drawing: Drawing
    subject: Mapping[str, str]


async def choose_pictures(api: DemoApi, community_ids: Mapping[str, str]) -> None:
    """Draws, uploads and chooses the pictures of all people, and of the communities with these keys and ids.

    Existing pictures stay. Without a worker, which has to decode the pictures, nobody gets one.
    """
    missing = [each for each in _chosen_pictures(community_ids) if not await _exists(api, each)]
    files = await asyncio.to_thread(draw, [each.drawing for each in missing])
    ids = [
        await upload(api, each.owner, f"{each.drawing.motif}.png", file, each.kind.purpose)
        for each, file in zip(missing, files, strict=True)
    ]
    for each, id_ in zip(missing, ids, strict=True):
        if not await becomes_ready(api, each.owner, id_):
            return
        await api.run(each.owner, each.kind.choose, file=id_, **each.subject)


def _chosen_pictures(community_ids: Mapping[str, str]) -> Iterator[ChosenPicture]:
    for kind, drawings in ((AVATAR, AVATARS), (BANNER, BANNERS)):
        for handle, drawing in drawings.items():
            yield ChosenPicture(kind, user(handle), drawing, {})
    founders = {community.key: user(community.members[0]) for community in COMMUNITIES}
    for kind, drawings in ((COMMUNITY_PICTURE, COMMUNITY_PICTURES), (COMMUNITY_BANNER, COMMUNITY_BANNERS)):
        for key, id_ in community_ids.items():
            if key in drawings:
                yield ChosenPicture(kind, founders[key], drawings[key], {"id": id_})


async def _exists(api: DemoApi, picture: ChosenPicture) -> bool:
    shown = (await api.run(picture.owner, picture.kind.shown, **picture.subject))["shown"]
    return shown["url"] is not None
