"""The request that opens a WebSocket, for clients that write its bytes themselves."""

PROTOCOL = "graphql-transport-ws"
HANDSHAKE_HEADERS = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    "sec-websocket-protocol": PROTOCOL,
}


def handshake_request(host: str) -> bytes:
    """Returns the request to a host such as `127.0.0.1:8000`."""
    headers = [f"{name}: {value}" for name, value in {"host": host, **HANDSHAKE_HEADERS}.items()]
    return "\r\n".join(["GET /graphql HTTP/1.1", *headers, "", ""]).encode()
