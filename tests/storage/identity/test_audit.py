"""The audit log: filters, pages and organizations."""

import pytest

from storage.errors import NotFound
from storage.identity.audit import Actor, AuditAction, AuditFilter
from storage.stores import Stores

pytestmark = pytest.mark.anyio

ALL = AuditFilter()


async def test_audit_log_is_filtered_and_paged(shared_stores: Stores, admin: Actor) -> None:
    administration, audit, org = shared_stores.user_administration, shared_stores.audit, admin.organization_id
    for user in ("ann", "bob"):
        await administration.deactivate(admin, user, "left")
        await administration.reactivate(admin, user)
    entries = await audit.list_entries(org, ALL, None, 10)

    async def targets(audit_filter: AuditFilter) -> list[str]:
        return [each.target_id for each in await audit.list_entries(org, audit_filter, None, 10)]

    assert await targets(ALL) == ["bob", "bob", "ann", "ann"]
    assert await audit.list_entries(org, ALL, entries[0].id, 2) == entries[1:3]
    assert await targets(AuditFilter(target_id="ann")) == ["ann", "ann"]
    assert await targets(AuditFilter(action=AuditAction.USER_REACTIVATED)) == ["bob", "ann"]
    assert await targets(AuditFilter(actor_id="bob")) == []
    assert await targets(AuditFilter(until=entries[2].at)) == ["ann"]
    assert await targets(AuditFilter(since=entries[1].at)) == ["bob", "bob"]
    assert await audit.list_entries(org + "x", ALL, None, 10) == []
    for other, after in ((org + "x", entries[0].id), (org, "unknown")):
        with pytest.raises(NotFound):
            await audit.list_entries(other, ALL, after, 10)
