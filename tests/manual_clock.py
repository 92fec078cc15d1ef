"""A clock for code that reads the time by a function, or by the module `time`."""


class ManualClock:
    """A clock whose time only tests change."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def perf_counter(self) -> float:
        return self.now
