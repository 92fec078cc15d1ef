"""The audit log's enums have one description for each value."""

from schema.values.audit_values import AUDIT_VALUES
from storage.identity.audit import AuditAction, TargetKind


def test_every_action_and_kind_of_target_is_described() -> None:
    assert set(AUDIT_VALUES["AuditAction"]) == {action.name for action in AuditAction}
    assert set(AUDIT_VALUES["AuditTargetKind"]) == {kind.name for kind in TargetKind}
