"""The names of users' streams."""

from hypothesis import given
from hypothesis import strategies as st

from storage.identity.records import stream_owner, user_stream


@given(st.text(min_size=1), st.text(min_size=1))
def test_stream_owner_is_the_inverse_of_user_stream(org: str, user: str) -> None:
    assert stream_owner(user_stream(org, user)) == (org, user)
