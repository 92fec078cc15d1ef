"""The input objects of the calls area, as clients write them."""

from datetime import datetime

import strawberry

from storage.calls.records import CallOutcome, CallReportEvent
from storage.calls.windows import WEEK, Weekday

_KEY = "The same key from the same user within 24 hours returns what it made; with other arguments it is a CONFLICT."

strawberry.enum(CallOutcome, description="How a call ended.")
strawberry.enum(CallReportEvent, description="What is reported of a call.")
strawberry.enum(Weekday, description="A day of the week.")


@strawberry.input(description="HH:MM, local to timeZone; an end before the start runs over midnight.")
class CallingWindowInput:
    start: str = strawberry.field(description="When calls may begin, such as 09:00.")
    end: str = strawberry.field(description="When no call begins any more, such as 18:30; the start again lasts a day.")
    time_zone: str = strawberry.field(description="IANA zone whose clocks count, such as Asia/Tokyo.")
    weekdays: list[Weekday] = strawberry.field(
        default_factory=lambda: list(WEEK), description="Days on which the window begins; at least one."
    )


@strawberry.input(description="A list of numbers to be called.")
class LaunchCallJobInput:
    name: str = strawberry.field(description="What people call the job; 1 to 200 characters.")
    scenario: str = strawberry.field(
        description="What the telephony side does in a call: 1 to 4000 characters that it understands."
    )
    csv: str = strawberry.field(
        description=(
            "Header row; a column phone_number is required, the others are scenario variables. UTF-8, with or without "
            "BOM; at most 10 MB and 100,000 rows. Numbers with their country, such as +819012345678."
        )
    )
    start_at: datetime | None = strawberry.field(
        default=strawberry.UNSET, description="Not before then; at most ten years ahead."
    )
    window: CallingWindowInput | None = strawberry.field(
        default=strawberry.UNSET, description="Calls begin inside it only; at any time when left out."
    )
    max_attempts: int = strawberry.field(
        default=1,
        description=(
            "Calls per number, first one included, 1 to 10; NO_ANSWER, BUSY and VOICEMAIL are tried again after "
            "retryDelayS."
        ),
    )
    retry_delay_s: int = strawberry.field(
        default=1800, description="How long a number is left alone before it is tried again. Seconds, up to 7 days."
    )
    expected_call_s: int = strawberry.field(
        default=60, description="For estimatedEndAt: how long a call is expected to last. Seconds, 1 to 86400."
    )
    idempotency_key: str | None = strawberry.field(default=strawberry.UNSET, description=_KEY)


@strawberry.input(description="How much may be called at once.")
class CallLimitsInput:
    concurrent_calls: int = strawberry.field(description="Calls at a time, 0 to 1000; at 0 none begins.")
    calls_per_second: float = strawberry.field(
        description="Starts in any rolling second, 0.1 to 100; below 1 one start in any 1/callsPerSecond seconds."
    )


@strawberry.input(description="What happened to a call.")
class CallReportInput:
    call_id: strawberry.ID = strawberry.field(description="The callId that the call was handed over with.")
    sequence: int = strawberry.field(
        description="Grows with each report of a call. One that is not higher than the last changes nothing."
    )
    event: CallReportEvent = strawberry.field(description="ANSWERED, or ENDED, after which nothing changes any more.")
    outcome: CallOutcome | None = strawberry.field(
        default=strawberry.UNSET, description="How it ended; required with ENDED."
    )
    at: datetime | None = strawberry.field(
        default=strawberry.UNSET,
        description=(
            "When it happened, for endedAt: by the sender's clock, but not before the call's start nor later than now, "
            "which it is when left out. The order is that of `sequence`."
        ),
    )
