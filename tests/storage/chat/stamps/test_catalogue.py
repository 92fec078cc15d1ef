"""Each stamp of the catalogue has a picture, and pictures contain no scripts and no references."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import server
from storage.chat.stamps.catalogue import STAMPS, Stamp, find_stamp, own_stamp

PICTURES = Path(server.__file__).parent / "stamps"
SVG = "{http://www.w3.org/2000/svg}"
SHAPES = {f"{SVG}{name}" for name in ("svg", "g", "path", "circle", "ellipse")}


def test_stamps_and_pictures_match_one_to_one() -> None:
    assert {f"/stamps/{path.name}" for path in PICTURES.iterdir()} == {each.image_url for each in STAMPS}


def test_stamp_is_found_by_its_unique_id() -> None:
    assert [find_stamp(each.id) for each in STAMPS] == list(STAMPS)
    assert len({each.id for each in STAMPS}) == len({each.name for each in STAMPS}) == len(STAMPS) == 12
    assert find_stamp("nothing") is None


def test_stamp_ids_are_safe_in_urls() -> None:
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", each.id) for each in STAMPS)


@pytest.mark.parametrize("each", STAMPS, ids=lambda each: each.id)
def test_picture_is_small_and_has_plain_shapes_only(each: Stamp) -> None:
    source = (PICTURES / f"{each.id}.svg").read_bytes()
    root = ElementTree.fromstring(source)
    assert len(source) < 8 * 1024
    assert root.get("viewBox") == "0 0 128 128"
    assert {node.tag for node in root.iter()} <= SHAPES
    assert not "".join(root.itertext()).strip()


@pytest.mark.parametrize("each", STAMPS, ids=lambda each: each.id)
def test_picture_has_no_scripts_and_loads_nothing(each: Stamp) -> None:
    source = (PICTURES / f"{each.id}.svg").read_text()
    assert not re.search(r"script|href|foreignObject|style|url\(|data:|<!|<\?|\son\w+=", source, re.IGNORECASE)
    assert re.findall(r"https?://[^\"]+", source) == ["http://www.w3.org/2000/svg"]


def test_own_stamp_is_found_by_its_id() -> None:
    stamp = own_stamp("sea-gull_2", "01kb")
    assert find_stamp(stamp.id) == stamp
    assert stamp.emoji == ":sea-gull_2:"
