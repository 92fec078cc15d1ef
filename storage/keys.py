"""Every Redis key and channel name, with type, lifetime and owner. Redis holds hints only: all may vanish."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Keys:
    """Names under one prefix, the database's name, so that several products can share one Redis."""

    prefix: str

    def channel(self, stream: str) -> str:
        """Pub/sub channel of a stream's events. Owner: storage/streams/hub.py."""
        return f"{self.prefix}:stream:{stream}"

    def write_lease(self, stream: str) -> list[str]:
        """Strings, 200 and 30 ms: the holder of a stream's write lease, and the next holder.

        Owner: storage/streams/write_leases.py.
        """
        return [f"{self.prefix}:turn:{stream}", f"{self.prefix}:turn:{stream}:next"]

    def hot_page(self, topic_id: str) -> list[str]:
        """Hash, sorted set and hash, one minute after the last use: a hot topic's messages.

        Owner: storage/chat/hot_pages.py.
        """
        return [f"{self.prefix}:pool:{topic_id}:{part}" for part in ("meta", "items", "pending")]

    def queue(self, name: str) -> str:
        """Sorted set of arq, one for each kind of job. Owner: storage/queue.py and arq."""
        return f"{self.prefix}:queue:{name}"

    def call_wake_ups(self) -> str:
        """Pub/sub channel: ids of organizations whose calls changed. Owner: storage/calls/wake_ups.py."""
        return f"{self.prefix}:calls"
