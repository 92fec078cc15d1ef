"""Mentions and hashtags: examples that the web client shares, and the limit of work."""

import json
from typing import Any

import pytest

from storage.identity.mentions import MAX_HASHTAGS, MAX_MENTIONS, find_handles, find_hashtags, normalize_hashtag
from tests.programs import WEB_CLIENT

EXAMPLES = json.loads((WEB_CLIENT / "src" / "ui" / "text" / "mention-examples.json").read_text("utf-8"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: str(example["name"]))
def test_examples_have_listed_mentions_and_hashtags(example: dict[str, Any]) -> None:
    assert find_handles(example["text"]) == example["mentions"]
    assert find_hashtags(example["text"]) == example["hashtags"]


@pytest.mark.parametrize(
    "tag", ["caf\u00e9", "cafe\u0301", "CAF\u00c9", "\uff43\uff41\uff46\u00e9", "cafe\u0301\ufe0f"]
)
def test_equal_hashtags_have_one_normalized_form(tag: str) -> None:
    assert normalize_hashtag(tag) == "caf\u00e9"


def test_text_has_limited_mentions_and_hashtags() -> None:
    text = " ".join(f"@u{n} #t{n}" for n in range(MAX_MENTIONS + 1))
    assert find_handles(text) == [f"u{n}" for n in range(MAX_MENTIONS)]
    assert find_hashtags(text) == [f"t{n}" for n in range(MAX_HASHTAGS)]
