"""A process that commits messages and exits before it publishes their events. test_realtime_faults.py starts it."""

import asyncio
import os

from storage.chat.changes import NewMessage
from storage.chat.messages import MessageStore
from storage.mongo import connect
from storage.streams.sequencer import Sequencer


def commit_and_exit(*arguments: str) -> None:
    """Takes MongoDB's URI, the database, a topic, its community, an author, and the texts of the messages."""
    asyncio.run(_commit_and_exit(*arguments))


async def _commit_and_exit(uri: str, database: str, topic: str, community: str, author: str, *texts: str) -> None:
    """Posts the texts in one batch. Sends no PUBLISH to Redis, and does not relay the outbox."""
    mongo = connect(uri, database)
    sequencer = Sequencer(mongo, lambda *_: None, lambda _: None)
    messages = MessageStore(mongo, sequencer)
    await asyncio.gather(*(messages.post(NewMessage(topic, community, author, text, None, ())) for text in texts))
    os._exit(0)
