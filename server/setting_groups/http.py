"""Settings of HTTP: where web processes listen, and the addresses, proxies and pages that they serve."""

from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated

from pydantic_settings import NoDecode

from server.setting_groups.sign_in import SignInSettings
from server.setting_groups.values import (
    COMMA_SEPARATED,
    NO_PROXY,
    TRUSTED_PROXIES,
    HostName,
    Origin,
    PublicAddress,
    TrustedProxy,
    origin_of,
    setting,
)


class HttpSettings(SignInSettings):
    """The settings of web processes as HTTP servers, and behind a proxy."""

    allowed_origins: Annotated[tuple[Origin, ...], NoDecode, COMMA_SEPARATED] = setting(
        (),
        expected="origins such as https://example.org, separated by commas",
        description="Other origins whose pages may use the API from a browser. The origin of NOROSHI_PUBLIC_URL "
        "always may.",
    )
    allowed_hosts: Annotated[tuple[HostName, ...], NoDecode, COMMA_SEPARATED] = setting(
        (),
        expected="host names such as chat.example.org or *.example.org, separated by commas, or * for all",
        description="Further host names by which clients reach web processes. Requests for other hosts are refused. "
        "IP addresses, localhost, and the hosts of NOROSHI_PUBLIC_URL and NOROSHI_HOST are always served.",
    )
    public_url: PublicAddress | None = setting(
        None,
        expected="an http or https address",
        description="The address at which others reach this server, in image URLs and callbacks. "
        "If unset, http://127.0.0.1 with the port.",
    )
    trusted_proxies: Annotated[tuple[TrustedProxy, ...], NoDecode, COMMA_SEPARATED, TRUSTED_PROXIES] = setting(
        ("127.0.0.1", "::1"),
        expected="addresses and networks such as 10.0.0.5 or fd00::/64, separated by commas, or none",
        description="The proxies whose header X-Forwarded-For names the client. Name only addresses that no client "
        "has. By default, proxies on the same machine.",
    )
    host: str = setting(
        "127.0.0.1",
        expected="a host name or address to listen on",
        description="The address on which web processes listen. Option: --host.",
    )
    port: int = setting(
        8000,
        ge=0,
        le=65535,
        expected="a number from 0 to 65535",
        description="The port on which web processes listen; 0 takes a free one. Option: --port.",
    )

    @property
    def proxy_networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """The networks of trusted proxies; empty when none is trusted."""
        return tuple(ip_network(each) for each in self.trusted_proxies if each != NO_PROXY)

    @property
    def page_origins(self) -> tuple[str, ...]:
        """The origins whose pages may use the API: that of the public address, and the allowed ones.

        The public address is the server's own, also behind a proxy that sends another `Host`.
        """
        if self.public_url is None:
            return self.allowed_origins
        return tuple(dict.fromkeys([origin_of(self.public_url), *self.allowed_origins]))

    @property
    def base_url(self) -> str:
        """The address at which others reach this server, without a slash at the end."""
        return self.public_url or f"http://127.0.0.1:{self.port}"
