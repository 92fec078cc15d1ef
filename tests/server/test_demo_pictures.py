"""The demo's people and communities get pictures that are drawn, uploaded and chosen once."""

import asyncio
import io
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from PIL import Image

from jobs.pictures.decoder import PictureDecoder
from jobs.pictures.results import AVATAR, BANNER
from schema.root import schema
from server.auth.tokens import mint
from server.demo import DEMO_USERS, DemoUser, drawing_program, fill, filling, picture_filling, uploads
from server.demo.cast import COMMUNITIES, DemoCommunity, DemoTopic, user
from server.demo.drawings import AVATARS, BANNERS, COMMUNITY_BANNERS, COMMUNITY_PICTURES, SQUARE, WIDE, draw
from server.demo.private_talk import PICTURES
from server.graphql import Operations
from storage.files.pictures import DecodedPicture
from tests.serving import WebProcess, worker_process

SQUARES = [*AVATARS.values(), *COMMUNITY_PICTURES.values()]
BANNER_DRAWINGS = [*BANNERS.values(), *COMMUNITY_BANNERS.values()]
DRAWINGS = [*SQUARES, *BANNER_DRAWINGS, *(each.drawing for each in PICTURES)]

SHOWN = """
{ viewer { avatarUrl bannerUrl } communities(joined: true, limit: 5) { name pictureUrl bannerUrl } }
"""


class TestDrawings:
    def test_drawings_are_deterministic_and_distinct(self) -> None:
        """Another process draws the same bytes, although the hashes of strings differ."""
        files = draw(DRAWINGS)
        assert draw(DRAWINGS) == files
        assert len(set(files)) == len(DRAWINGS)

    def test_people_and_communities_have_different_motifs(self) -> None:
        assert len({each.motif for each in SQUARES}) == len(SQUARES)
        assert {each.motif for each in DRAWINGS} == set(drawing_program.MOTIFS)

    def test_two_people_have_no_avatar(self) -> None:
        assert {each.handle for each in DEMO_USERS} - set(AVATARS) == {"sora", "oscar"}
        assert set(BANNERS) <= set(AVATARS)
        assert set(COMMUNITY_BANNERS) < set(COMMUNITY_PICTURES) == {each.key for each in COMMUNITIES}

    @pytest.mark.anyio
    async def test_decoder_keeps_size_of_every_picture(self) -> None:
        decoder = PictureDecoder()
        for drawings, settings, size in ((SQUARES, AVATAR, SQUARE), (BANNER_DRAWINGS, BANNER, WIDE)):
            for drawing, file in zip(drawings, draw(drawings), strict=True):
                result = await decoder.decode(file, settings)
                assert isinstance(result, DecodedPicture), drawing
                assert (result.picture.width, result.picture.height) == size, drawing
                assert len(file) < 200_000, drawing

    def test_filling_process_does_not_import_pillow(self) -> None:
        """Pictures are drawn in another process, as they are decoded."""
        code = "import sys, server.demo; sys.exit('PIL' in sys.modules)"
        assert subprocess.run([sys.executable, "-P", "-c", code]).returncode == 0

    def test_operations_are_valid(self) -> None:
        kinds = [picture_filling.AVATAR, picture_filling.BANNER]
        kinds += [picture_filling.COMMUNITY_PICTURE, picture_filling.COMMUNITY_BANNER]
        cache = Operations(schema).documents
        for document in [document for kind in kinds for document in (kind.shown, kind.choose)]:
            assert cache.prepare(document).errors(None, None) == []


@dataclass(frozen=True, slots=True)
class DemoReader:
    """Reads a product as its demo users."""

    web: WebProcess

    def token(self, each: DemoUser) -> str:
        return mint(
            self.web.secret,
            user_id=each.id,
            organization_id=each.organization_id,
            roles=each.roles,
            name=each.name,
            handle=each.handle,
        )

    def shown(self) -> dict[str, dict[str, Any]]:
        """Returns the pictures that each demo user sees, by handle."""
        return {each.handle: self._shown_to(each) for each in DEMO_USERS}

    def picture(self, path: str, handle: str) -> Image.Image:
        """Returns the picture at a path."""
        return Image.open(io.BytesIO(self._request("GET", path, user(handle)).content))

    def _shown_to(self, each: DemoUser) -> dict[str, Any]:
        data: dict[str, Any] = self._request("POST", "/graphql", each, json={"query": SHOWN}).json()["data"]
        return data

    def _request(self, method: str, path: str, each: DemoUser, **arguments: Any) -> httpx2.Response:
        headers = {"authorization": f"Bearer {self.token(each)}"}
        response = httpx2.request(method, self.web.url + path, headers=headers, trust_env=False, **arguments)
        assert response.status_code == 200, response.text
        return response


class TestFill:
    def test_fill_shows_pictures_and_second_fill_keeps_them(
        self,
        web: WebProcess,
        tmp_path: Path,
        mongodb_uri: str,
        redis_url: str,
        small_demo: list[tuple[DemoCommunity, DemoTopic]],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(uploads, "MAX_WAIT_S", 120.0)
        reader = DemoReader(web)
        with worker_process(tmp_path, mongodb_uri, redis_url, web.database):
            asyncio.run(fill(web.url, reader.token))
            shown = reader.shown()
            monkeypatch.setattr(filling, "_is_filled", never_filled)
            asyncio.run(fill(web.url, reader.token))
        assert {handle for handle, each in shown.items() if each["viewer"]["avatarUrl"]} == set(AVATARS)
        assert {handle for handle, each in shown.items() if each["viewer"]["bannerUrl"]} == set(BANNERS)
        (hikers,), (platform,) = shown["ken"]["communities"], shown["liam"]["communities"]
        assert hikers["pictureUrl"]
        assert (platform["pictureUrl"] is None, platform["bannerUrl"]) == (False, None)
        assert reader.picture(hikers["bannerUrl"], "ken").size == WIDE
        assert reader.picture(shown["hana"]["viewer"]["avatarUrl"], "ken").size == (192, 192)
        assert reader.shown() == shown


async def never_filled(*_: object) -> bool:
    return False
