"""Every Redis key and channel name, with type, lifetime and owning module. Redis holds hints only: all may be lost."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Keys:
    """Redis names under one prefix, the database's name, so that several products can share one Redis."""

    prefix: str

    def channel(self, stream: str) -> str:
        """Returns the pub/sub channel of a stream's events. Owner: storage/streams/hub.py."""
        return f"{self.prefix}:stream:{stream}"

    def write_lease(self, stream: str) -> list[str]:
        """Returns two strings' keys: the holder of a stream's write lease (200 ms), and the next holder (30 ms).

        Owner: storage/streams/write_leases.py.
        """
        return [f"{self.prefix}:turn:{stream}", f"{self.prefix}:turn:{stream}:next"]

    def hot_page(self, topic_id: str) -> list[str]:
        """Returns the keys of a hash, a sorted set and a hash: the newest messages of a hot topic.

        They expire one minute after the last use. Owner: storage/chat/hot_pages.py.
        """
        return [f"{self.prefix}:pool:{topic_id}:{part}" for part in ("meta", "items", "pending")]

    def queue(self, name: str) -> str:
        """Returns the key of a sorted set of arq, one for each kind of job. Owner: storage/queue.py and arq."""
        return f"{self.prefix}:queue:{name}"

    def call_wake_ups(self) -> str:
        """Returns the pub/sub channel for ids of organizations whose calls changed.

        Owner: storage/calls/wake_ups.py.
        """
        return f"{self.prefix}:calls"
