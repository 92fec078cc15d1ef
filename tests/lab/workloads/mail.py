"""Mail: delivery events, some of them sent several times, and lookups of the address book."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.lab.session import RETRY_S, Laboratory, WorkloadSession

AREA = "mail"
SENDERS = 2
ADDRESSES = [f"user{n}@d{n % 3}.example.org" for n in range(12)]
FINISH_DEADLINE_S = 240.0
ANSWERS = {"success": (250, "2.0.0"), "soft": (452, "4.2.2"), "hard": (550, "5.1.1")}
RECORD = """mutation ($events: [DeliveryEventInput!]!) {
  recordDeliveries(events: $events) { accepted duplicates rejected { eventId message } } }"""
BOOK = "query ($addresses: [String!]!) { addressBook(addresses: $addresses) { address success softBounce hardBounce } }"


@dataclass
class MailWorkload:
    """Senders of delivery events, and readers of the address book. Each sender repeats an event until it is stored."""

    laboratory: Laboratory
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    async def prepare(self) -> None:
        """Needs no preparation."""

    async def run(self) -> None:
        """Lets senders and a reader act until the run ends."""
        senders = [self._send(self._session(f"sender{n}"), n) for n in range(SENDERS)]
        await asyncio.gather(*senders, self._read(self._session("postmaster")))

    async def finish(self) -> None:
        """Waits until the book does not change any more, and reads it."""
        session, begin = self._session("postmaster"), self.laboratory.history.now()
        success_count = _success_count(self.laboratory)
        previous: list[Any] | None = None
        current: list[Any] = []
        while self.laboratory.history.now() < begin + FINISH_DEADLINE_S:
            previous, current = current, await session.run_until_ok("addressBook", {}, BOOK, _book, addresses=ADDRESSES)
            if previous == current and sum(success for _, success, *_ in current) == success_count:
                break
            await asyncio.sleep(4 * RETRY_S)
        await session.as_final().run_until_ok("addressBook", {}, BOOK, _book, addresses=ADDRESSES)

    def _session(self, name: str) -> WorkloadSession:
        return self.laboratory.session(name, AREA, "SERVICE")

    async def _send(self, session: WorkloadSession, sender: int) -> None:
        number = 0
        earlier: list[Any] = []
        while not self.laboratory.ended.is_set():
            events = []
            for _ in range(session.rng.choice((1, 5, 30))):
                number += 1
                # Each event has a time of its own, in the day before the run.
                seconds = session.rng.randrange(80_000) - 86_400 + (number * SENDERS + sender) / 100_000
                kind = session.rng.choices(tuple(ANSWERS), (6, 3, 1))[0]
                events.append([f"{session.process}-{number}", session.rng.choice(ADDRESSES), kind, seconds])
            events += session.rng.sample(earlier, min(2, len(earlier)))
            await self._record(session, events)
            earlier = events[-20:]
            await self.laboratory.pause(session.rng.uniform(0.2, 1.0))

    async def _record(self, session: WorkloadSession, events: list[Any]) -> None:
        inputs = [
            {
                "eventId": id_,
                "address": address,
                "at": (self.started_at + timedelta(seconds=seconds)).isoformat(),
                "smtpCode": ANSWERS[kind][0],
                "enhancedStatus": ANSWERS[kind][1],
                "messageId": id_,
            }
            for id_, address, kind, seconds in events
        ]
        await session.run_until_ok("recordDeliveries", {"events": events}, RECORD, events=inputs)

    async def _read(self, session: WorkloadSession) -> None:
        while not self.laboratory.ended.is_set():
            await session.run("addressBook", {}, BOOK, _book, addresses=ADDRESSES)
            await self.laboratory.pause(session.rng.uniform(0.3, 1.0))


def _success_count(laboratory: Laboratory) -> int:
    """Returns the number of distinct successes that were sent."""
    rows = [operation for operation in laboratory.history.operations if operation["operation"] == "recordDeliveries"]
    return len({id_ for operation in rows for id_, _, kind, _ in operation["arguments"]["events"] if kind == "success"})


def _book(standings: list[dict[str, Any]]) -> list[Any]:
    return [[each["address"], each["success"], each["softBounce"], each["hardBounce"]] for each in standings]
