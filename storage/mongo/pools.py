"""Pooled connections that the driver wrongly refuses to use for sessions.

PyMongo asks a server once for each connection whether sessions may be used. The answer is "no" while the member
cannot be read, as after a rollback. The connection keeps this answer until it is closed, even if the member becomes
primary.
"""

from typing import Any

from pymongo.errors import ConfigurationError, PyMongoError


def lacks_sessions(error: PyMongoError) -> bool:
    """Returns whether the driver refused a session because of its connection. No command was sent."""
    return isinstance(error, ConfigurationError) and "Sessions are not supported" in str(error)


async def discard_connections(client: Any) -> None:
    """Closes the idle connections to every member at once, and the connections in use after their commands."""
    # Motor wraps PyMongo's synchronous client, whose pools need no `await`.
    topology = vars(client).get("delegate", client)._topology
    for server in list(topology._servers.values()):
        resetting = server.pool.reset_without_pause()
        if resetting is not None:
            await resetting
