"""Where requests and sockets come from."""

from starlette.requests import HTTPConnection

from resolvers.context import RequestClient

MAX_USER_AGENT_CHARS = 300


def client_of(connection: HTTPConnection) -> RequestClient:
    """Returns the address and the user agent from which a request or a socket comes."""
    user_agent = connection.headers.get("user-agent")
    address = connection.client and connection.client.host
    return RequestClient(address, user_agent and user_agent[:MAX_USER_AGENT_CHARS])
