"""Every Redis key and channel name, with type, lifetime and owning module. All of them may be lost without harm."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RedisKeys:
    """Redis names under one prefix, the database's name, so that several databases can share one Redis."""

    prefix: str

    def channel(self, stream: str) -> str:
        """Returns the pub/sub channel of a stream's events. Owner: storage/streams/hub.py."""
        return f"{self.prefix}:stream:{stream}"

    def queue(self, name: str) -> str:
        """Returns the key of a sorted set: one of arq's queues. Owner: storage/redis/queue.py and arq."""
        return f"{self.prefix}:queue:{name}"

    def call_wake_ups(self) -> str:
        """Returns the pub/sub channel for ids of organizations whose calls changed.

        Owner: storage/calls/wake_ups.py.
        """
        return f"{self.prefix}:calls"

    def online(self, organization_id: str) -> str:
        """Returns the key of a sorted set: the ids of an organization's people who are online, by when they expire.

        Expires 15 s after the last renewal. Owner: storage/identity/presence/online.py.
        """
        return f"{self.prefix}:online:{organization_id}"

    def typing(self, topic_id: str) -> str:
        """Returns the key of a sorted set: the ids of people who are typing in a topic, by when they expire.

        Expires 6 s after the last signal. Owner: storage/identity/presence/typing_hub.py.
        """
        return f"{self.prefix}:typing:{topic_id}"

    def persisted_document(self, sha256: str) -> str:
        """Returns the key of a string: the text of a document, by its SHA-256 in hexadecimal.

        Expires 7 days after its last use. Owner: storage/redis/persisted_documents.py.
        """
        return f"{self.prefix}:document:{sha256}"

    def persisted_documents(self) -> str:
        """Returns the key of a sorted set: the SHA-256 of each persisted document, by its last use in Unix seconds.

        Expires 7 days after a document was saved. Owner: storage/redis/persisted_documents.py.
        """
        return f"{self.prefix}:documents"
