"""The input objects of the calls area."""

from datetime import datetime

import strawberry

from resolvers.idempotency import KEY_DESCRIPTION
from storage.calls.records import CallOutcome, CallReportKind
from storage.calls.windows import WEEK, Weekday

strawberry.enum(CallOutcome, description="How a call ended.")
strawberry.enum(
    CallReportKind,
    name="CallReportEvent",
    description="An event of a call that the telephony service reports.",
)
strawberry.enum(Weekday, description="A day of the week.")


@strawberry.input(
    description="Times of day (HH:MM) between which calls may begin, local to timeZone. May run over midnight."
)
class CallingWindowInput:
    start: str = strawberry.field(description="Time of day from which calls may begin, such as 09:00.")
    end: str = strawberry.field(
        description="Time of day from which no call begins, such as 18:30. If it is not after `start`, it is on the "
        "next day."
    )
    time_zone: str = strawberry.field(description="IANA time zone of start and end, such as Asia/Tokyo.")
    weekdays: list[Weekday] = strawberry.field(
        default_factory=lambda: list(WEEK), description="Days on which the window begins. At least one."
    )


@strawberry.input(description="A list of phone numbers, and how to call them.")
class LaunchCallJobInput:
    name: str = strawberry.field(description="Display name of the job, 1 to 200 characters.")
    scenario: str = strawberry.field(
        description="Instructions for the telephony service, as text that it understands. 1 to 4000 characters."
    )
    csv: str = strawberry.field(
        description=(
            "CSV with a header row, separated by commas, semicolons or tabs. The column phone_number is required; the "
            "others are variables of the scenario. At most 10 MiB and 100,000 rows. Numbers need their country code, "
            "such as +819012345678, unless `defaultRegion` is set. A cell with anything besides one number is an error."
        )
    )
    default_region: str | None = strawberry.field(
        default=strawberry.UNSET,
        description="Country of numbers without a country code, by its two capital letters of ISO 3166. With JP, "
        "090-1234-5678 is +819012345678. Omitted or null: such numbers are errors.",
    )
    start_at: datetime | None = strawberry.field(
        default=strawberry.UNSET,
        description="Time before which no call begins, at most 3660 days ahead. Omitted or null: calls begin at once.",
    )
    window: CallingWindowInput | None = strawberry.field(
        default=strawberry.UNSET,
        description="Window in which calls may begin. Omitted or null: calls may begin at any time.",
    )
    max_attempts: int = strawberry.field(
        default=1,
        description=(
            "Maximum number of calls to one number, 1 to 10. A number is called again after NO_ANSWER, BUSY and "
            "VOICEMAIL, when `retryDelayS` seconds have passed."
        ),
    )
    retry_delay_s: int = strawberry.field(
        default=1800, description="Seconds before a number is called again, 0 to 604800 (7 days)."
    )
    expected_call_s: int = strawberry.field(
        default=60, description="Expected length of a call in seconds, 1 to 86400. Used for estimatedEndAt."
    )
    idempotency_key: str | None = strawberry.field(default=strawberry.UNSET, description=KEY_DESCRIPTION)


@strawberry.input(description="Limits of the organization's calls.")
class CallLimitsInput:
    concurrent_calls: int = strawberry.field(
        description="Number of calls that may be active at a time, 0 to 1000. With 0, no call begins."
    )
    calls_per_second: float = strawberry.field(
        description="Number of calls that may start in any rolling second, 0.1 to 100. A value below 1 allows one "
        "start in any 1/callsPerSecond seconds."
    )


@strawberry.input(description="A report of what happened to a call.")
class CallReportInput:
    call_id: strawberry.ID = strawberry.field(
        description="The `callId` that the telephony service received when the call was started."
    )
    sequence: int = strawberry.field(
        description="Number that grows with each report of a call. A report changes nothing if its number is not "
        "greater than the number of an earlier report."
    )
    event: CallReportKind = strawberry.field(description="ANSWERED or ENDED. Reports after ENDED change nothing.")
    outcome: CallOutcome | None = strawberry.field(
        default=strawberry.UNSET, description="How the call ended. Required if `event` is ENDED."
    )
    at: datetime | None = strawberry.field(
        default=strawberry.UNSET,
        description=(
            "When the event happened, by the sender's clock. Omitted or null: now. `endedAt` shows this time, but "
            "never a time before the call's start or in the future. The order of reports depends on `sequence` alone."
        ),
    )
    recording_url: str | None = strawberry.field(
        default=strawberry.UNSET,
        description=(
            "Address of the call's recording, which a worker fetches once, without credentials. Any report of the call "
            "may carry it, also one that changes nothing else. The first address counts. Omitted or null: no recording."
        ),
    )
