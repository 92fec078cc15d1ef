"""An organization's mail: events in, folds, standings out."""

from collections.abc import Sequence
from dataclasses import dataclass

from storage.locks import Lock
from storage.mail.records import AddressStanding, DeliveryEvent, DomainStanding, RecordDeliveriesResult
from storage.stores import Stores
from tests.storage.mail.model import Model, Told


@dataclass
class OrganizationMail:
    """One organization, through one process."""

    stores: Stores
    org: str

    async def record(self, *events: DeliveryEvent, source: str = "mta") -> RecordDeliveriesResult:
        result = await self.stores.ledger.record(self.org, source, events)
        assert result.rejected == []
        return result

    async def lock(self, partition: int) -> Lock:
        """Held by nobody else in these tests."""
        lock = None
        while lock is None:
            lock = await self.stores.locks.acquire(f"mail:{partition}")
        return lock

    async def aggregate(self, limit: int = 1000) -> int:
        """Folds all that waits; how many events."""
        folded = 0
        for partition in await self.stores.aggregator.pending_partitions():
            lock = await self.lock(partition)
            while found := await self.stores.aggregator.aggregate(lock, partition, limit):
                folded += found
            await self.stores.locks.release(lock)
        return folded

    async def take(self, *events: DeliveryEvent, source: str = "mta") -> None:
        """Records and folds."""
        await self.record(*events, source=source)
        await self.aggregate()

    async def standings(self, addresses: Sequence[str]) -> list[AddressStanding]:
        found: list[AddressStanding] = []
        for start in range(0, len(addresses), 1000):
            found += await self.stores.address_book.look_up(self.org, addresses[start : start + 1000])
        return found

    async def standing(self, address: str = "ann@example.org") -> AddressStanding:
        return (await self.standings([address]))[0]

    async def domain(self, domain: str = "example.org") -> DomainStanding:
        self.stores.address_book._domains.clear()
        return (await self.stores.address_book.domain_standings(self.org, [domain]))[0]

    async def assert_is(self, model: Model) -> None:
        """The whole book says what the model says."""
        addresses, domains = model.addresses, model.domains
        self.stores.address_book._domains.clear()
        for address, found in zip(addresses, await self.standings(addresses), strict=True):
            dead = found.domain is not None and found.domain.blocked
            told = Told(found.success, found.soft_bounce, found.hard_bounce, found.blocked)
            expected = model.address(address)
            expected.blocked |= dead
            assert told == expected, (expected, found)
        for domain in domains:
            each = (await self.stores.address_book.domain_standings(self.org, [domain]))[0]
            assert Told(each.success, each.soft_bounce, each.hard_bounce, each.blocked) == model.domain(domain), domain
