"""The listening socket: its address, and the errors of an address that cannot be used."""

import socket

import pytest

from server.processes import StartupError
from server.web import listen


def test_port_0_takes_free_port() -> None:
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            pass


def test_ipv6_host_is_listened_on() -> None:
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    with listen("::1", 0) as listener:
        assert listener.getsockname()[0] == "::1"


def test_used_port_error_names_address_and_remedy() -> None:
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(StartupError, match=f"127.0.0.1:{port}, it is in use: choose another with --port"):
            listen("127.0.0.1", port)


@pytest.mark.parametrize("host", ["no such host", "192.0.2.1"])
def test_foreign_host_error_names_host(host: str) -> None:
    with pytest.raises(StartupError, match=f"Can't listen on {host}:0"):
        listen(host, 0)
