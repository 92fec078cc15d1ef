"""Load generator of the benchmark of reconnects: its sockets are cut at once, connect again, and resume by cursor."""

import socket
import struct
import time
from typing import Any

from benchmarks.fanout_load import LoadGenerator, ResumingSubscriber, SubscriptionLoadSpec, main

RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER with a time of 0: closing sends RST and no FIN, as if the connection had been lost."""


class ReconnectingLoad(LoadGenerator):
    """A load generator with the command `cut`. Up to 2000 of its sockets connect at a time."""

    max_connecting, connect_timeout_s = 2000, 120.0

    def __init__(self, spec: SubscriptionLoadSpec) -> None:
        super().__init__(spec)
        self._cut_subscribers: dict[int, ResumingSubscriber] = {}

    def cut(self) -> dict[str, Any]:
        """Cuts every socket, connects all of them again, and waits until each has received an event.

        Returns the progress and the faults. `connect_s` has the seconds until all sockets were connected again, and
        `first_ms` the milliseconds from the cut to the first event of each socket, ascending.
        """
        self._cut_subscribers, self._by_index, self._by_fd = self._by_index, {}, {}
        for subscriber in self._cut_subscribers.values():
            subscriber.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            subscriber.sock.close()
        cut_at_s = time.monotonic()
        connected = self.connect()
        while self.progress()["least"] == 0 and time.monotonic() < cut_at_s + 2 * self.connect_timeout_s:
            self._read_sockets(0.1)
        first_ms = sorted(1000 * (each.first_event_s - cut_at_s) for each in self._by_index.values() if each.frames)
        return {**self.progress(), "connect_s": connected["seconds"], "first_ms": first_ms, "faults": self.tally.faults}

    def _new_subscriber(self, index: int, is_sampled: bool) -> ResumingSubscriber:
        return ResumingSubscriber(self, self.spec.tokens[index], is_sampled, self._cut_subscribers.get(index))


if __name__ == "__main__":
    main(ReconnectingLoad)
