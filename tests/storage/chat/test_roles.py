"""Ranks of the roles in a community."""

import pytest

from storage.chat.roles import CommunityRole, may_act_on, stored_role

OWNER, MODERATOR, MEMBER = CommunityRole


@pytest.mark.parametrize(
    ("actor", "is_admin", "allowed"),
    [
        (OWNER, False, {MODERATOR, MEMBER, None}),
        (OWNER, True, {MODERATOR, MEMBER, None}),
        (MODERATOR, False, {MEMBER, None}),
        (MEMBER, False, set()),
        (None, False, set()),
        (MEMBER, True, {MEMBER, None}),
        (None, True, {MEMBER, None}),
    ],
)
def test_people_act_on_lower_ranks_only(
    actor: CommunityRole | None, is_admin: bool, allowed: set[CommunityRole | None]
) -> None:
    assert {target for target in (*CommunityRole, None) if may_act_on(actor, is_admin, target)} == allowed


def test_membership_without_role_is_of_a_member() -> None:
    assert stored_role(None) is None
    assert stored_role({"user": "ann"}) is MEMBER  # type: ignore[typeddict-item]
