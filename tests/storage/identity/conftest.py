"""A new organization for each test, because the tests of a module share a database."""

import pytest

from storage.ids import new_id


@pytest.fixture
def org() -> str:
    return new_id()
