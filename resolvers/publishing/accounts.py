"""Connected accounts. Credentials are validated, verified with the network, encrypted, and never returned or logged."""

from collections.abc import Callable
from typing import Annotated

import strawberry
from strawberry import ID

from resolvers.access import require_role
from resolvers.arguments import checked_text, text_or_none
from resolvers.context import Info
from resolvers.idempotency import input_key
from resolvers.publishing.addresses import checked_web_address
from resolvers.publishing.inputs import ConnectAccountInput, ReplaceAccountCredentialsInput
from storage.errors import BadUserInput, Conflict
from storage.identity.roles import Role
from storage.publishing.accounts import AccountToConnect
from storage.publishing.networks import BEHAVIOURS, Network
from storage.publishing.records import ConnectedAccount, VerifiedAccount
from storage.secrets.webhook_keys import webhook_key

MAX_NAME_CHARS = 100
MAX_CREDENTIALS_CHARS = 4096
SANDBOX_CREDENTIALS = ("ok", "fail", "lose", "slow")


async def connected_accounts(info: Info) -> list[ConnectedAccount]:
    """Returns the organization's connected accounts."""
    viewer = require_role(info, Role.OPERATOR)
    return await info.context.stores.accounts.list_connected(viewer.organization_id)


async def connect_account(
    info: Info, input: Annotated[ConnectAccountInput, strawberry.argument(description="The account to connect.")]
) -> ConnectedAccount:
    """Connects an account whose credentials its network accepts."""
    viewer, accounts = require_role(info, Role.OPERATOR), info.context.stores.accounts
    name = checked_text("name", input.name, 1, MAX_NAME_CHARS)
    base_url = await checked_base_url(info, input.network, text_or_none(input.base_url))
    credentials = _checked_credentials(input.network, input.credentials)
    key = input_key(viewer, "connectAccount", input, credentials=accounts.fingerprint(credentials))
    if (connected := await accounts.find_by_key(key)) is not None:
        return connected
    verified = await info.context.verify_account(input.network, base_url, credentials)
    new = AccountToConnect(viewer.organization_id, input.network, name, base_url, viewer.id, verified)
    return await accounts.connect(new, credentials, key, info.context.actor)


async def replace_account_credentials(
    info: Info,
    input: Annotated[ReplaceAccountCredentialsInput, strawberry.argument(description="The new credentials.")],
) -> ConnectedAccount:
    """Replaces the credentials of a connected account by others of the same account, which its network accepts."""
    viewer, accounts = require_role(info, Role.OPERATOR), info.context.stores.accounts
    account = await accounts.get(viewer.organization_id, input.account_id)
    credentials = _checked_credentials(account.network, input.credentials)
    key = input_key(viewer, "replaceAccountCredentials", input, credentials=accounts.fingerprint(credentials))
    if (replaced := await accounts.find_by_key(key)) is None:
        verified = await _verify_same_account(info, account, credentials)
        replaced = await accounts.replace_credentials(account, credentials, verified, key, info.context.actor)
    # A repeated request does this again, in case the first one was cut off.
    await info.context.stores.scheduled_posts.resume_account(replaced)
    return replaced


async def disconnect_account(
    info: Info, id: Annotated[ID, strawberry.argument(description="Id of the account.")]
) -> ConnectedAccount:
    """Deletes the account's credentials, and fails its scheduled publications."""
    viewer, stores = require_role(info, Role.OPERATOR), info.context.stores
    account = await stores.accounts.get(viewer.organization_id, id)
    account = await stores.accounts.disconnect(account, info.context.actor)
    await stores.scheduled_posts.fail_scheduled(account)
    await stores.accounts.mark_cleared(account)
    return account


async def _verify_same_account(info: Info, account: ConnectedAccount, credentials: str) -> VerifiedAccount:
    """Returns the account that the network names for new credentials. Raises: Unavailable, Conflict, BadUserInput.

    It must be the same as before. Accounts of earlier versions have none, so that any is accepted.
    """
    if account.disconnected_at is not None:
        raise Conflict("The account is disconnected. Connect it again.")
    verified = await info.context.verify_account(account.network, account.base_url, credentials)
    if account.network_id is not None and verified.id != account.network_id:
        raise BadUserInput("credentials", f"credentials of {account.handle}, not of {verified.handle}")
    return verified


async def checked_base_url(info: Info, network: Network, url: str | None) -> str | None:
    """Returns the address of an account's server without a slash at the end, or None. Raises: BadUserInput."""
    if network is Network.SANDBOX:
        if url is not None:
            raise BadUserInput("baseUrl", "no address, because the sandbox is part of this server")
        return None
    if url is None:
        if BEHAVIOURS[network].own_address is None:
            raise BadUserInput("baseUrl", f"an address, because {network.value} has no default one")
        return None
    address = checked_web_address("baseUrl", url)
    if (refusal := await info.context.egress_refusal(address)) is not None:
        raise BadUserInput("baseUrl", f"an address to which this server may send requests, but {refusal}")
    return address if network is Network.WEBHOOK else address.rstrip("/")


def _checked_credentials(network: Network, value: str) -> str:
    """Returns the credentials if they have the network's format. Raises: BadUserInput, whose message omits them."""
    is_valid, expected = _CREDENTIAL_FORMATS.get(network, (_is_token, "an access token"))
    if not 1 <= len(value) <= MAX_CREDENTIALS_CHARS or not is_valid(value):
        raise BadUserInput("credentials", expected)
    return value


def _is_token(value: str) -> bool:
    return value.isascii() and value.isprintable() and " " not in value


def _is_pair(value: str) -> bool:
    first, colon, second = value.partition(":")
    return bool(first and colon and second) and _is_token(value)


def _is_webhook_secret(value: str) -> bool:
    try:
        return bool(webhook_key(value))
    except ValueError:
        return False


_CREDENTIAL_FORMATS: dict[Network, tuple[Callable[[str], bool], str]] = {
    Network.WEBHOOK: (_is_webhook_secret, "a secret; the part after whsec_ must be base64"),
    Network.BLUESKY: (_is_pair, "the form handle:app-password"),
    Network.INSTAGRAM: (_is_pair, "the form user-id:token"),
    Network.SANDBOX: (lambda value: value in SANDBOX_CREDENTIALS, " or ".join(SANDBOX_CREDENTIALS)),
}
