"""The input objects of the calls area."""

from datetime import datetime

import strawberry

from storage.calls.records import CallOutcome, CallReportEvent
from storage.calls.windows import WEEK, Weekday

_KEY = (
    "Makes a repeated mutation take effect once: within 24 hours the same key of the same user returns the same job. "
    "CONFLICT with other arguments."
)

strawberry.enum(CallOutcome, description="How a call ended.")
strawberry.enum(CallReportEvent, description="An event of a call that the telephony service reports.")
strawberry.enum(Weekday, description="A day of the week.")


@strawberry.input(
    description="Times of day (HH:MM) between which calls may begin, local to timeZone. May run over midnight."
)
class CallingWindowInput:
    start: str = strawberry.field(description="First time at which calls may begin, such as 09:00.")
    end: str = strawberry.field(
        description="Time from which no call begins, such as 18:30. On the next day if it is not after start."
    )
    time_zone: str = strawberry.field(description="IANA time zone of start and end, such as Asia/Tokyo.")
    weekdays: list[Weekday] = strawberry.field(
        default_factory=lambda: list(WEEK), description="Days on which the window begins. At least one."
    )


@strawberry.input(description="A list of phone numbers, and how to call them.")
class LaunchCallJobInput:
    name: str = strawberry.field(description="Name of the job for people, 1 to 200 characters.")
    scenario: str = strawberry.field(
        description="Instructions for the telephony service, as text that it understands. 1 to 4000 characters."
    )
    csv: str = strawberry.field(
        description=(
            "CSV with a header row. The column phone_number is required; the others are variables of the scenario. At "
            "most 10 MB and 100,000 rows. Numbers need their country code, such as +819012345678."
        )
    )
    start_at: datetime | None = strawberry.field(
        default=strawberry.UNSET, description="No call begins earlier. At most ten years ahead. Omitted: at once."
    )
    window: CallingWindowInput | None = strawberry.field(
        default=strawberry.UNSET, description="Calls begin only inside the window. Omitted: at any time."
    )
    max_attempts: int = strawberry.field(
        default=1,
        description=(
            "Calls per number including the first one, 1 to 10. After NO_ANSWER, BUSY and VOICEMAIL the number is "
            "called again, retryDelayS later."
        ),
    )
    retry_delay_s: int = strawberry.field(
        default=1800, description="Seconds before a number is called again, at most 604800 (7 days)."
    )
    expected_call_s: int = strawberry.field(
        default=60, description="Expected length of a call in seconds, 1 to 86400. Used for estimatedEndAt."
    )
    idempotency_key: str | None = strawberry.field(default=strawberry.UNSET, description=_KEY)


@strawberry.input(description="Limits of the organization's calls.")
class CallLimitsInput:
    concurrent_calls: int = strawberry.field(
        description="Calls that may be active at a time, 0 to 1000. At 0 no call begins."
    )
    calls_per_second: float = strawberry.field(
        description="Starts in any rolling second, 0.1 to 100. Below 1: one start in any 1/callsPerSecond seconds."
    )


@strawberry.input(description="A report of what happened to a call.")
class CallReportInput:
    call_id: strawberry.ID = strawberry.field(
        description="The callId that the telephony service received with the call."
    )
    sequence: int = strawberry.field(
        description="Grows with each report of a call. A report that is not higher than the last changes nothing."
    )
    event: CallReportEvent = strawberry.field(description="ANSWERED or ENDED. Reports after ENDED change nothing.")
    outcome: CallOutcome | None = strawberry.field(
        default=strawberry.UNSET, description="How the call ended. Required with ENDED."
    )
    at: datetime | None = strawberry.field(
        default=strawberry.UNSET,
        description=(
            "When the event happened, by the sender's clock. Shown as endedAt, limited to the time from the call's "
            "start to now. Omitted: now. Reports are ordered by sequence, not by this."
        ),
    )
