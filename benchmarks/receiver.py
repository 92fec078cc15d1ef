"""The webhook twin as a process of its own: prints its port, and tells at /ledger when each request had arrived."""

import asyncio
import socket
import sys

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tests.twins.webhook import WebhookTwin


def serve() -> None:
    twin = WebhookTwin()

    async def ledger(request: Request) -> JSONResponse:
        told = [[effect.text, effect.at] for effect in twin.ledger]
        twin.ledger.clear()
        return JSONResponse(told)

    app = twin.app()
    app.router.routes.append(Route("/ledger", ledger))
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listener:
        print(listener.getsockname()[1], flush=True)
        config = uvicorn.Config(app, log_config=None, access_log=False, loop="uvloop", backlog=4096)
        asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))


if __name__ == "__main__":
    sys.exit(serve())
