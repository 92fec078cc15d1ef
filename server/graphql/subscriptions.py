"""Serves subscriptions: the one way for sockets, event streams and tests."""

import asyncio

from server.graphql.broadcasts import Broadcasts
from server.graphql.documents import PreparedOperation
from server.graphql.event_execution import EventExecution, write_events
from server.graphql.fair_shares import LoopShare
from server.graphql.frames import EventWriter, Listener
from server.graphql.operations import Operations
from server.graphql.protocols import OperationContext
from server.graphql.subscription_limits import SubscriptionLimits
from server.graphql.subscription_start import SubscriptionStarter, ViewerSubscription
from storage.errors import DomainError


class Subscriptions:
    """The open subscriptions to one schema in this process."""

    def __init__(self, operations: Operations) -> None:
        self.broadcasts = Broadcasts(operations.execution_timeout_s)
        self._timeout_s = operations.execution_timeout_s
        self._starter = SubscriptionStarter(operations)
        self._limits = SubscriptionLimits()

    async def serve(
        self,
        operation: PreparedOperation,
        context: OperationContext,
        writer: EventWriter,
        id_: bytes | None,
        share: LoopShare | None = None,
        since: str | None = None,
    ) -> DomainError | None:
        """Writes the events until the caller is cancelled or the subscription ends.

        `id_` is the client's id of the subscription as JSON without quotes; None for an event stream. `since` takes the
        place of the operation's own cursor. Returns the error with which a recheck of permissions ended the
        subscription.

        Raises: OperationRefused and DomainError of a subscription that cannot start; the errors of reads that ended it.
        """
        subscription = await self._starter.start(context, operation, since)
        # Frees the memory of the text and the variables, which nobody needs any more.
        del operation
        ended = asyncio.get_running_loop().create_future()
        listener = Listener(writer, id_, subscription.source.viewer.id, ended, share)
        with self._limits.open(subscription):
            if isinstance(subscription, ViewerSubscription):
                execution = EventExecution(subscription.executor, self._timeout_s)
                await write_events(execution, subscription.source, listener)
                return None
            broadcast = self.broadcasts.get(subscription.key, subscription.executor, subscription.source)
            position = subscription.source.since
            # Frees the memory of the executor: the broadcast uses only the executor of its first listener.
            del subscription
            return await broadcast.serve(listener, position)
