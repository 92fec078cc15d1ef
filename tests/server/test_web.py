"""The listening socket: where it listens, and what is said when it can't."""

import socket

import pytest

from server.processes import StartupError
from server.web import listen


def test_port_0_takes_a_free_one() -> None:
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            pass


def test_it_listens_on_ipv6_as_well() -> None:
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    with listen("::1", 0) as listener:
        assert listener.getsockname()[0] == "::1"


def test_a_taken_port_names_host_port_and_remedy() -> None:
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(StartupError, match=f"127.0.0.1:{port}, it is in use: choose another with --port"):
            listen("127.0.0.1", port)


@pytest.mark.parametrize("host", ["no such host", "192.0.2.1"])
def test_a_host_that_is_not_ours_is_named(host: str) -> None:
    with pytest.raises(StartupError, match=f"Can't listen on {host}:0"):
        listen(host, 0)
