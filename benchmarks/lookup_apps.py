"""Ordinary Strawberry server of lookups over the product's data: `... lookup_apps SOCKET_FD`.

Strawberry's view and executor without changes, and a resolver with the same two reads as the product. The server never
answers 429.
"""

import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial

import strawberry
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.websockets import WebSocket
from strawberry.asgi import GraphQL
from strawberry.dataloader import DataLoader

import server.app
import server.web
from server.auth.credentials import bearer_credential
from server.auth.viewers import ViewerSessions
from server.settings import Settings
from storage.mail.book import AddressBook
from storage.mail.records import DomainStanding, VerdictRule
from storage.stores import Stores, open_stores

strawberry.enum(VerdictRule)


@strawberry.type
class Verdict:
    rule: VerdictRule
    detail: str


@strawberry.type
class Domain:
    domain: str
    blocked: bool


@strawberry.type
class Standing:
    address: str
    blocked: bool
    verdict: Verdict
    success: int
    soft_bounce: int
    hard_bounce: int
    last_event_at: datetime | None
    domain_name: strawberry.Private[str]

    @strawberry.field
    async def domain(self, info: strawberry.Info) -> Domain | None:
        standing: DomainStanding = await info.context["domains"].load(self.domain_name)
        return Domain(domain=standing.domain, blocked=standing.blocked)


@strawberry.type
class Query:
    @strawberry.field
    async def address_book(self, info: strawberry.Info, addresses: list[str]) -> list[Standing]:
        book: AddressBook = info.context["stores"].address_book
        standings = await book.look_up(info.context["org"], addresses)
        return [
            Standing(
                address=each.address,
                blocked=each.blocked,
                verdict=Verdict(rule=each.verdict.rule, detail=each.verdict.detail),
                success=each.success,
                soft_bounce=each.soft_bounce,
                hard_bounce=each.hard_bounce,
                last_event_at=each.last_event_at,
                domain_name=each.domain.domain if each.domain else "",
            )
            for each in standings
        ]


class OrdinaryView(GraphQL[dict[str, object], None]):
    """Strawberry's view without changes."""

    def __init__(self, stores: Stores, viewers: ViewerSessions) -> None:
        super().__init__(strawberry.Schema(query=Query))
        self._stores, self._viewers = stores, viewers

    async def get_context(self, request: Request | WebSocket, response: Response | WebSocket) -> dict[str, object]:
        """Returns the context of a request, with a DataLoader of domains."""
        session = await self._viewers.session(bearer_credential(request.headers["authorization"]))
        assert session is not None
        org = session.user.organization_id
        load_domains = partial(self._stores.address_book.domain_standings, org)
        return {"stores": self._stores, "org": org, "domains": DataLoader(load_domains)}


async def ready(_request: Request) -> Response:
    """Answers readiness checks."""
    return Response()


def create_app(settings: Settings) -> Starlette:
    """Returns the application."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        servers = settings.mongodb_uri or "", settings.redis_url or ""
        async with open_stores(*servers, settings.database, address_keys=settings.keys_of_addresses) as stores:
            view = OrdinaryView(stores, ViewerSessions(server.app.authenticators(settings, stores)))
            app.router.routes.append(Route("/graphql", view, methods=["POST"]))
            yield

    return Starlette(routes=[Route("/readyz", ready)], lifespan=lifespan)


def main() -> None:
    """Serves on the inherited socket until SIGTERM."""
    vars(server.app).update(create_app=create_app)
    server.web.serve_web(Settings.from_environment(), socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    main()
