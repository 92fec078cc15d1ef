"""Browsers of people with local accounts, for benchmarks of sign-ins."""

import time
from dataclasses import dataclass, field

import httpx2
import orjson

from benchmarks.servers import RunningDeployment
from tests.product import first_admin_link

PASSWORD = "a beacon on the windy hill"
INVITE = """
mutation ($email: String!) {
  createInvitation(input: { role: MEMBER, email: $email, expiresInHours: 1 }) { url }
}
"""


@dataclass(slots=True)
class Browser:
    """A browser at an address of its own, with its cookies."""

    http: httpx2.AsyncClient
    address: str
    """IP address, as a trusted proxy names it."""

    cookies: dict[str, str] = field(default_factory=dict)

    async def post(self, path: str, **body: object) -> httpx2.Response:
        """Sends a request, and keeps the cookies of the answer."""
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        headers = {"noroshi-client": "benchmark", "x-forwarded-for": self.address, "cookie": cookies}
        response = await self.http.post(path, json=body, headers=headers)
        for header in response.headers.get_list("set-cookie"):
            name, _, value = header.partition(";")[0].partition("=")
            self.cookies[name] = value
        return response

    async def sign_in(self, mail_address: str, password: str = PASSWORD) -> tuple[int, float]:
        """Tries to sign in. Returns the status and the milliseconds until the answer."""
        began_s = time.perf_counter()
        response = await self.post("/sign-in/password", address=mail_address, password=password)
        return response.status_code, (time.perf_counter() - began_s) * 1000


async def register_admin(running: RunningDeployment, http: httpx2.AsyncClient, mail_address: str) -> Browser:
    """Creates the first account. Returns its browser."""
    token = first_admin_link(running.product).partition("#first-admin=")[2]
    browser = Browser(http, "192.0.2.1")
    response = await browser.post("/accounts", firstAdmin=token, address=mail_address, name="Ada", password=PASSWORD)
    response.raise_for_status()
    return browser


async def register_member(admin: Browser, mail_address: str, ip_address: str) -> Browser:
    """Creates the account of an invited member. Returns its browser."""
    created = await admin.post("/graphql", query=INVITE, variables={"email": mail_address})
    url = orjson.loads(created.content)["data"]["createInvitation"]["url"]
    browser = Browser(admin.http, ip_address)
    invitation = url.partition("#invitation=")[2]
    response = await browser.post("/accounts", invitation=invitation, name="Member", password=PASSWORD)
    response.raise_for_status()
    return browser
