"""The mail of one organization in a test: records events, aggregates them, and reads standings."""

from collections.abc import Sequence
from dataclasses import dataclass

from storage.locks import Lock
from storage.mail.records import AddressStanding, DeliveryEvent, DomainStanding, RecordDeliveriesResult
from storage.stores import Stores
from tests.storage.mail.model import AddressBookModel, StandingModel


@dataclass
class MailScenario:
    """The mail of one organization, as one process reads and writes it."""

    stores: Stores
    org: str

    async def record(self, *events: DeliveryEvent, source: str = "mta") -> RecordDeliveriesResult:
        """Records events. Asserts that none is rejected."""
        result = await self.stores.ledger.record(self.org, source, events)
        assert result.rejected == []
        return result

    async def acquire_lock(self, partition: int) -> Lock:
        """Acquires the lock of a partition, as soon as it is free."""
        lock = None
        while lock is None:
            lock = await self.stores.locks.acquire(f"mail:{partition}")
        return lock

    async def aggregate(self, limit: int = 1000) -> int:
        """Aggregates all waiting events. Returns how many."""
        event_count = 0
        for partition in await self.stores.aggregator.pending_partitions():
            lock = await self.acquire_lock(partition)
            while batch_size := await self.stores.aggregator.aggregate_batch(lock, partition, limit):
                event_count += batch_size
            await self.stores.locks.release(lock)
        return event_count

    async def add_events(self, *events: DeliveryEvent, source: str = "mta") -> None:
        """Records and aggregates events."""
        await self.record(*events, source=source)
        await self.aggregate()

    async def standings(self, addresses: Sequence[str]) -> list[AddressStanding]:
        standings: list[AddressStanding] = []
        for start in range(0, len(addresses), 1000):
            standings += await self.stores.address_book.look_up(self.org, addresses[start : start + 1000])
        return standings

    async def standing(self, address: str = "ann@example.org") -> AddressStanding:
        return (await self.standings([address]))[0]

    async def domain_standing(self, domain: str = "example.org") -> DomainStanding:
        """Returns the standing of a domain, without the cache."""
        self.stores.address_book._domains.clear()
        return (await self.stores.address_book.domain_standings(self.org, [domain]))[0]

    async def assert_equals(self, model: AddressBookModel) -> None:
        """Asserts that all standings equal the model's."""
        addresses, domains = model.addresses, model.domains
        self.stores.address_book._domains.clear()
        for address, standing in zip(addresses, await self.standings(addresses), strict=True):
            is_domain_blocked = standing.domain is not None and standing.domain.blocked
            expected = model.address_standing(address)
            expected.blocked |= is_domain_blocked
            assert _model_standing(standing) == expected, (expected, standing)
        for domain in domains:
            (domain_standing,) = await self.stores.address_book.domain_standings(self.org, [domain])
            assert _model_standing(domain_standing) == model.domain_standing(domain), domain


def _model_standing(standing: AddressStanding | DomainStanding) -> StandingModel:
    return StandingModel(standing.success, standing.soft_bounce, standing.hard_bounce, standing.blocked)
