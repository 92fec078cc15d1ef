"""Records the commands that clients send to MongoDB."""

from pymongo import monitoring


class CommandNameRecorder(monitoring.CommandListener):
    """The names of the commands that drivers send. Single-round-trip reads are not monitored."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        self.names.append(event.command_name)

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None: ...

    def failed(self, event: monitoring.CommandFailedEvent) -> None: ...
