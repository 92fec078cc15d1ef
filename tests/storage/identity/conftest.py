"""An organization of its own for each test, since one database serves all tests of a module."""

import pytest

from storage.ids import new_id


@pytest.fixture
def org() -> str:
    return new_id()
