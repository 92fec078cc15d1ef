"""The documents of a chat, which are created once in each process of tests and inserted for each test.

Creating the chat takes 56 messages to MongoDB, most of them in transactions. Inserting its documents takes one for each
collection.
"""

from dataclasses import replace
from typing import Any

from storage.stores import Stores
from tests.resolvers.people import ChatScenario, until_outbox_is_empty

NOT_STORED = {"data_version", "secrets"}
"""Collections whose documents the stores create themselves."""


class StoredChat:
    """A chat that was created on an empty database."""

    def __init__(self, chat: ChatScenario, documents: dict[str, list[Any]]) -> None:
        self._chat, self._documents = chat, documents

    async def insert(self, stores: Stores) -> ChatScenario:
        """Inserts the documents into another empty database, and returns the chat there."""
        # At the same time each of them would open a connection.
        for name, documents in self._documents.items():
            await stores.mongo[name].insert_many(documents)
        people = {name: replace(getattr(self._chat, name), stores=stores) for name in ("ann", "bob", "eve")}
        return replace(self._chat, **people)


async def stored_chat(chat: ChatScenario) -> StoredChat:
    """Reads the documents of a chat. Nothing else may be in its database."""
    mongo = chat.ann.stores.mongo
    await until_outbox_is_empty(chat.ann.stores)
    names = [name for name in await mongo.database.list_collection_names() if not name.startswith("system.")]
    documents = {name: await mongo[name].find().to_list(None) for name in names if name not in NOT_STORED}
    return StoredChat(chat, {name: each for name, each in documents.items() if each})
