"""GraphQL types and root fields of mail policies. schema/root.py adds the fields to the root types."""

from datetime import datetime

import strawberry
from strawberry import ID

import resolvers.mail.policies
from resolvers.limits.writes import WriteLimit
from schema.binding import field, mutation
from schema.identity import User
from schema.mail.book import Verdict
from storage.mail.decisions.bounce_classes import BounceClass
from storage.mail.decisions.policies import BounceTreatment


@strawberry.type(description="How a policy treats bounces of one class.")
class BounceClassTreatment:
    bounce_class: BounceClass = strawberry.field(description="Class of bounces.")
    treatment: BounceTreatment = strawberry.field(description="What bounces of the class do.")


@strawberry.type(
    description="The rules that block addresses of an organization. Lookups apply the present version within 5 s of "
    "its change, to bounces of any age. Decisions by operators and dead domains do not depend on it."
)
class MailPolicy:
    version: int = strawberry.field(description="Version, from 1; 0 for the policy of organizations that set none.")
    treatments: list[BounceClassTreatment] = strawberry.field(
        description="How each class of bounces is treated: one entry for each class."
    )
    hard_bounces: int = strawberry.field(
        description="How many bounces of classes with the treatment HARD block an address, counted since its latest "
        "delivery."
    )
    soft_bounce_days: int = strawberry.field(
        description="On how many UTC days bounces of classes with the treatment SOFT block an address, counted since "
        "its latest delivery."
    )
    soft_window_days: int | None = strawberry.field(
        description="How many of the last UTC days count for `softBounceDays`, today included. Null: all."
    )
    soft_block_days: int | None = strawberry.field(
        description="How many days after its last soft bounce a block by soft bounces ends. Null: with the next "
        "delivery only."
    )
    complaints_block: bool = strawberry.field(
        description="Whether a complaint blocks an address until `unblockAddress`."
    )
    keep_addresses: bool = strawberry.field(
        description="Whether addresses that bounce or are blocked by hand are kept readable, encrypted by the server's "
        "address keys. Otherwise only keyed hashes of addresses are stored."
    )
    reason: str | None = strawberry.field(
        description="Reason that the operator gave; null for version 0, and empty once the operator was erased."
    )
    set_at: datetime | None = strawberry.field(description="When the version was set; null for version 0.")
    set_by: User | None = field(
        resolvers.mail.policies.set_by,
        "Operator who set the version; null for version 0, and for an erased operator.",
        batch_resolver=resolvers.mail.policies.set_by_each,
    )


@strawberry.type(description="An address that a policy would block or free.")
class MailPolicyChange:
    address_hash: ID = strawberry.field(
        description="Keyed hash of the address, in hexadecimal digits. The audit log names the address by it too."
    )
    domain: str = strawberry.field(description="Domain of the address.")
    address: str | None = strawberry.field(
        description="The address, in lower case; null unless it bounced or was blocked by hand while the policy kept "
        "addresses."
    )
    blocked: bool = strawberry.field(
        description="True: it would be blocked, and is not now. False: it would be allowed, and is blocked now."
    )
    before: Verdict = strawberry.field(description="Verdict by the present policy.")
    after: Verdict = strawberry.field(description="Verdict by the tried policy.")


@strawberry.type(description="What a policy would change if it were set now.")
class MailPolicyDryRun:
    version: int = strawberry.field(description="Version of the present policy, with which the tried one is compared.")
    checked: int = strawberry.field(
        description="Number of addresses with bounces or complaints that were checked; at most 100,000."
    )
    blocked: int = strawberry.field(description="How many of them would be blocked, and are not now.")
    freed: int = strawberry.field(description="How many of them would be allowed, and are blocked now.")
    changes: list[MailPolicyChange] = strawberry.field(description="The first 1000 of these addresses.")
    next_after: str | None = strawberry.field(
        description="Value of `after` for the following addresses; null if all were checked."
    )


@strawberry.type
class MailPolicyQuery:
    """Reads of policies."""

    mail_policy: MailPolicy = field(
        resolvers.mail.policies.mail_policy, "The organization's present policy. Needs the role OPERATOR or SERVICE."
    )
    mail_policy_versions: list[MailPolicy] = field(
        resolvers.mail.policies.mail_policy_versions,
        "The latest versions of the policy that were set, the newest first. Needs the role OPERATOR or SERVICE.",
    )
    mail_policy_dry_run: MailPolicyDryRun = field(
        resolvers.mail.policies.mail_policy_dry_run,
        "Says which addresses a policy would block or free, and changes nothing. Needs the role OPERATOR or SERVICE.",
    )


@strawberry.type
class MailPolicyMutation:
    """Changes of policies."""

    set_mail_policy: MailPolicy = mutation(
        resolvers.mail.policies.set_mail_policy,
        "Sets the next version of the policy. The user and the reason are stored. CONFLICT if `afterVersion` is not "
        "the present version. Idempotent. Needs the role OPERATOR.",
        limit=WriteLimit.OPERATIONS,
    )
