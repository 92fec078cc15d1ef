"""Connecting accounts in a browser. The person allows access at the network, and types no credentials here."""

from collections.abc import Sequence
from typing import Annotated

import strawberry
from strawberry import ID

from resolvers.access import require_role
from resolvers.arguments import checked_text, text_or_none
from resolvers.context import Info
from resolvers.publishing.accounts import MAX_NAME_CHARS, checked_base_url
from resolvers.publishing.inputs import ConnectAccountInBrowserInput
from storage.errors import BadUserInput, Conflict
from storage.identity.roles import Role
from storage.publishing.credentials.connections import BegunConnection, ConnectionOwner, ConnectionRequest
from storage.publishing.networks import BEHAVIOURS, Network


async def browser_networks(info: Info) -> Sequence[Network]:
    """Returns the networks whose accounts can be connected in a browser."""
    require_role(info, Role.OPERATOR)
    return info.context.account_connections.connectable


async def connect_account_in_browser(
    info: Info,
    input: Annotated[ConnectAccountInBrowserInput, strawberry.argument(description="The account to connect.")],
) -> BegunConnection:
    """Begins to connect an account."""
    owner = _owner(info)
    name = checked_text("name", input.name, 1, MAX_NAME_CHARS)
    _check_connectable(info, input.network)
    url = text_or_none(input.base_url)
    if url is not None and BEHAVIOURS[input.network].own_address is not None:
        # The secret of the operator's app goes to the network's own address only.
        raise BadUserInput("baseUrl", f"no address, because {input.network.value} has a single one")
    base_url = await checked_base_url(info, input.network, url)
    return await info.context.account_connections.begin(owner, ConnectionRequest(input.network, name, base_url))


async def reconnect_account_in_browser(
    info: Info, account_id: Annotated[ID, strawberry.argument(description="Id of the account, which is connected.")]
) -> BegunConnection:
    """Begins to replace the credentials of a connected account."""
    owner = _owner(info)
    account = await info.context.stores.accounts.get(owner.user.organization_id, account_id)
    if account.disconnected_at is not None:
        raise Conflict("The account is disconnected. Connect it again.")
    _check_connectable(info, account.network)
    if account.base_url is not None and BEHAVIOURS[account.network].own_address is not None:
        raise Conflict("The account has an address of its own. Replace its credentials instead.")
    base_url = await checked_base_url(info, account.network, account.base_url)
    request = ConnectionRequest(account.network, account.name, base_url, account.id)
    return await info.context.account_connections.begin(owner, request)


def _owner(info: Info) -> ConnectionOwner:
    """Returns the viewer and the session. Raises: Forbidden, Unauthenticated."""
    return ConnectionOwner(require_role(info, Role.OPERATOR).key, info.context.session_id)


def _check_connectable(info: Info, network: Network) -> None:
    if network not in info.context.account_connections.connectable:
        raise Conflict(f"Accounts of {network.value} cannot be connected in a browser here. Use connectAccount.")
