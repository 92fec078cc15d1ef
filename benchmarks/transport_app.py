"""The product's application for servers that import it, without a web server of its own."""

from starlette.applications import Starlette

import server.app
from server.logs import configure_logging
from server.settings import Settings


def create() -> Starlette:
    """The application of the environment's settings."""
    settings = Settings.from_environment()
    configure_logging(settings.log_format, settings.log_level)
    return server.app.create_app(settings)
