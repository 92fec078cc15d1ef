"""Use cases of mail policies: reading, trying and setting the rules that block addresses."""

from collections.abc import Sequence
from typing import Annotated

import strawberry
from strawberry import UNSET, Parent

from resolvers.access import require_role
from resolvers.arguments import checked_text, text_or_none
from resolvers.context import Info
from resolvers.mail.book import MAX_REASON_CHARS, Reason, checked_hash
from storage.errors import BadUserInput
from storage.identity.records import User
from storage.identity.roles import Role
from storage.mail.decisions.bounce_classes import BounceClass
from storage.mail.decisions.dry_runs import PolicyDryRun, dry_run
from storage.mail.decisions.policies import (
    DEFAULT_TREATMENTS,
    MAX_HARD_BOUNCES,
    MAX_SOFT_DAYS,
    MAX_WINDOW_DAYS,
    BounceTreatment,
    MailPolicy,
    MailPolicyVersion,
)

MAX_VERSIONS = 100

strawberry.enum(BounceClass, description="Why a mail bounced, as far as policies tell reasons apart.")
strawberry.enum(BounceTreatment, description="What a policy does about bounces of a class.")


@strawberry.input(description="How a policy treats bounces of one class.")
class BounceClassTreatmentInput:
    bounce_class: BounceClass = strawberry.field(description="Class of bounces; each at most once.")
    treatment: BounceTreatment = strawberry.field(description="What bounces of the class do.")


@strawberry.input(description="The rules that block addresses. What is omitted is as in the policy of version 0.")
class MailPolicyInput:
    treatments: list[BounceClassTreatmentInput] | None = strawberry.field(
        default=UNSET, description="Classes that are treated otherwise than by version 0."
    )
    hard_bounces: int | None = strawberry.field(
        default=UNSET, description=f"How many hard bounces block: 1 to {MAX_HARD_BOUNCES}. Omitted or null: 1."
    )
    soft_bounce_days: int | None = strawberry.field(
        default=UNSET, description=f"On how many UTC days soft bounces block: 1 to {MAX_SOFT_DAYS}. Omitted or null: 3."
    )
    soft_window_days: int | None = strawberry.field(
        default=UNSET,
        description=f"How many of the last UTC days count: 1 to {MAX_WINDOW_DAYS}, and not fewer than "
        "`softBounceDays`. Omitted or null: all.",
    )
    soft_block_days: int | None = strawberry.field(
        default=UNSET,
        description=f"How many days after its last soft bounce a block ends: 1 to {MAX_WINDOW_DAYS}. Omitted or null: "
        "it ends with the next delivery only.",
    )
    complaints_block: bool | None = strawberry.field(
        default=UNSET, description="Whether a complaint blocks. Omitted or null: true."
    )
    keep_addresses: bool | None = strawberry.field(
        default=UNSET,
        description="Whether addresses that bounce or are blocked by hand after this are kept readable, encrypted by "
        "the server's address keys. False removes those that were kept. Omitted or null: false.",
    )

    def policy(self) -> MailPolicy:
        """Returns the policy. Raises: BadUserInput."""
        soft_days = _checked("softBounceDays", self.soft_bounce_days, MAX_SOFT_DAYS) or 3
        window = _checked("softWindowDays", self.soft_window_days, MAX_WINDOW_DAYS)
        if window is not None and window < soft_days:
            raise BadUserInput("softWindowDays", f"at least `softBounceDays`, which is {soft_days}")
        return MailPolicy(
            self._treatments(),
            _checked("hardBounces", self.hard_bounces, MAX_HARD_BOUNCES) or 1,
            soft_days,
            window,
            _checked("softBlockDays", self.soft_block_days, MAX_WINDOW_DAYS),
            self.complaints_block is not False,
        )

    def _treatments(self) -> dict[BounceClass, BounceTreatment]:
        chosen = dict(DEFAULT_TREATMENTS)
        seen = set[BounceClass]()
        for index, each in enumerate(self.treatments or ()):
            if each.bounce_class in seen:
                raise BadUserInput(f"treatments.{index}.bounceClass", "each class once")
            seen.add(each.bounce_class)
            chosen[each.bounce_class] = each.treatment
        return chosen


def _checked(name: str, value: int | None, maximum: int) -> int | None:
    if not isinstance(value, int):
        return None
    if not 1 <= value <= maximum:
        raise BadUserInput(name, f"1 to {maximum}")
    return value


Policy = Annotated[MailPolicyInput, strawberry.argument(description="The whole policy.")]


async def mail_policy(info: Info) -> MailPolicyVersion:
    """Returns the present policy."""
    viewer = require_role(info, Role.OPERATOR, Role.SERVICE)
    return await info.context.stores.address_book.policies.present(viewer.organization_id)


async def mail_policy_versions(
    info: Info,
    limit: Annotated[int, strawberry.argument(description=f"Number of versions, 1 to {MAX_VERSIONS}.")] = 20,
) -> list[MailPolicyVersion]:
    """Returns the latest versions that were set, the newest first."""
    viewer = require_role(info, Role.OPERATOR, Role.SERVICE)
    if not 1 <= limit <= MAX_VERSIONS:
        raise BadUserInput("limit", f"1 to {MAX_VERSIONS}")
    return await info.context.stores.address_book.policies.versions(viewer.organization_id, limit)


async def mail_policy_dry_run(
    info: Info,
    policy: Policy,
    after: Annotated[
        str | None,
        strawberry.argument(description="`nextAfter` of the dry run before. Omitted or null: from the first."),
    ] = UNSET,
) -> PolicyDryRun:
    """Returns what a policy would change."""
    viewer = require_role(info, Role.OPERATOR, Role.SERVICE)
    return await dry_run(
        info.context.stores.mongo,
        info.context.stores.address_book,
        viewer.organization_id,
        policy.policy(),
        checked_hash(text_or_none(after)),
    )


async def set_mail_policy(
    info: Info,
    policy: Policy,
    after_version: Annotated[
        int, strawberry.argument(description="Version of the present policy, which the change is based on.")
    ],
    reason: Reason,
) -> MailPolicyVersion:
    """Sets the next version of the policy."""
    viewer = require_role(info, Role.OPERATOR)
    checked_reason = checked_text("reason", reason, 1, MAX_REASON_CHARS)
    return await info.context.stores.address_book.policies.set(
        viewer.organization_id,
        policy.policy(),
        after_version,
        viewer.id,
        checked_reason,
        info.context.actor,
        keep_addresses=policy.keep_addresses is True,
    )


async def set_by(root: Parent[MailPolicyVersion], info: Info) -> User | None:
    """Returns the operator who set the version; None for version 0."""
    return (await set_by_each([root], info))[0]


async def set_by_each(versions: Sequence[MailPolicyVersion], info: Info) -> list[User | None]:
    """Returns the operator who set each version."""
    if not versions:
        return []
    ids = [version.set_by_id for version in versions]
    return await info.context.stores.users.find_or_none(versions[0].organization_id, ids)
