"""The sweeper that applies the retention rules of organizations. If a worker is killed, another one continues."""

from datetime import timedelta
from functools import partial

import structlog

from jobs.context import JobContext
from storage.calls.expired_data import PHONE_NUMBERS, VARIABLES
from storage.privacy.retention_rules import RetainedData, RetentionRule, RuleChanged

log = structlog.get_logger(__name__)

_CALL_FIELDS = {RetainedData.PHONE_NUMBERS: PHONE_NUMBERS, RetainedData.CALL_VARIABLES: VARIABLES}


async def apply_retention_rules(jobs: JobContext) -> int:
    """Applies all rules that are due, one after the other. Returns the number of rules."""
    rules, count = jobs.stores.retention_rules, 0
    while (rule := await rules.claim()) is not None:
        count += 1
        try:
            await _apply(jobs, rule)
            await rules.finish(rule)
        except RuleChanged:
            log.info("retention_rule_changed")
        except Exception as error:
            # The rule is due again when its claim ends. The other rules must not wait for it.
            log.exception("retention_rule_failed", error=type(error).__name__)
    return count


async def _apply(jobs: JobContext, rule: RetentionRule) -> None:
    stores = jobs.stores
    if rule.days is None:
        return
    age, renew = timedelta(days=rule.days), partial(stores.retention_rules.renew, rule)
    if rule.data is RetainedData.MAIL_LEDGER:
        await stores.expired_events.empty(rule.organization_id, age, rule.done_until, renew)
    elif rule.data is RetainedData.DIRECT_MESSAGES:
        await stores.expired_messages.delete(rule.organization_id, age, rule.done_until, renew)
    else:
        await stores.expired_call_data.remove(rule.organization_id, _CALL_FIELDS[rule.data], age, renew)
