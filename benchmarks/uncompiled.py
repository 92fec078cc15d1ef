"""The product's web process with graphql-core's executor instead of compiled execution.

Usage: python -m benchmarks.uncompiled SOCKET_FD
"""

import socket
import sys

import server.app
import server.web
from server.logs import configure_logging
from server.settings import Settings


def main() -> None:
    """Serves on the inherited socket until SIGTERM."""
    settings = Settings.from_environment()
    configure_logging(settings.log_format, settings.log_level)
    vars(server.app).update(compiled_executor=lambda _documents: None)
    server.web.serve_web(settings, socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    main()
