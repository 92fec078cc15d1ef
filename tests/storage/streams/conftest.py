"""Fixtures of tests of streams."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def no_head_comparisons() -> Iterator[None]:
    """Disables the periodic comparison of heads, so events arrive only by Redis or by an explicit comparison."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("storage.streams.hub.COMPARE_EVERY_S", 3600.0)
        yield
