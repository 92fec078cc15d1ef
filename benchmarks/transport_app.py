"""The product's application for web servers that import it."""

from starlette.applications import Starlette

import server.app
from server.logs import configure_logging
from server.settings import Settings


def create() -> Starlette:
    """Returns the application with the settings of the environment."""
    settings = Settings.from_environment()
    configure_logging(settings.log_format, settings.log_level)
    return server.app.create_app(settings)
