"""Connects accounts by OAuth: sends a person to the network, and exchanges the code that the network returns."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jobs.providers.social.oauth.authorization import Authorization, Grant, OAuthApp, OAuthNetwork
from jobs.providers.social.verification import AccountVerifier, domain_errors
from storage.errors import BadUserInput, Conflict, CredentialsNotAccepted
from storage.identity.audit import Actor
from storage.publishing.accounts import AccountToConnect
from storage.publishing.credentials.connections import (
    BegunConnection,
    ConnectionOwner,
    ConnectionRequest,
    PendingConnection,
)
from storage.publishing.networks import Network
from storage.publishing.records import ConnectedAccount, VerifiedAccount
from storage.stores import Stores

VERIFIER_BYTES = 32


class OtherAccount(Conflict):
    """The person has allowed access to another account than the one that was to be connected again."""


@dataclass(frozen=True, slots=True)
class AccountConnector:
    """Begins and finishes connections. `redirect_uri` is the address to which networks send the browser back."""

    stores: Stores
    networks: Mapping[Network, OAuthNetwork]
    verifier: AccountVerifier
    redirect_uri: str

    @property
    def connectable(self) -> Sequence[Network]:
        """The networks whose accounts can be connected in a browser."""
        return tuple(self.networks)

    async def begin(self, owner: ConnectionOwner, request: ConnectionRequest) -> BegunConnection:
        """Returns the address at which the person allows access.

        Raises: Conflict for a network without an app; BadUserInput for a server that registers no app; Unavailable if
        the server does not answer.
        """
        oauth = self.networks.get(request.network)
        if oauth is None:
            raise Conflict(f"This server has no app at {request.network.value}. Connect the account by its token.")
        base_url = request.base_url or oauth.api_address
        app = await self._app(oauth, request.network, base_url)
        verifier = secrets.token_urlsafe(VERIFIER_BYTES)
        pending = PendingConnection(
            request.network,
            request.name,
            base_url,
            request.account_id,
            verifier,
            app.client_id,
            app.client_secret,
        )
        state, expires_at = await self.stores.account_connections.begin(owner, pending)
        authorization = Authorization(app, self.redirect_uri, state, verifier)
        return BegunConnection(oauth.authorization_url(base_url, authorization), expires_at)

    async def _app(self, oauth: OAuthNetwork, network: Network, base_url: str | None) -> OAuthApp:
        try:
            async with domain_errors(network, []):
                return await oauth.app(base_url, self.redirect_uri)
        except CredentialsNotAccepted as refusal:
            expected = f"the address of a {network.value} server; it answered: {refusal.details['reason']}"
            raise BadUserInput("baseUrl", expected) from None

    async def finish(self, owner: ConnectionOwner, actor: Actor, state: str, code: str) -> ConnectedAccount:
        """Exchanges the code, verifies the account, and stores it or its new credentials.

        Raises: ConnectionNotPending; CredentialsNotAccepted; OtherAccount; Conflict; Forbidden; Unavailable.
        """
        pending = await self.stores.account_connections.take(owner, state)
        grant = await self._exchange(pending, state, code)
        verified = await self.verifier.verify(pending.network, pending.base_url, grant.secret)
        if pending.account_id is None:
            return await self._connect(owner, actor, pending, grant, verified)
        return await self._replace(actor, pending.account_id, grant, verified)

    async def refuse(self, owner: ConnectionOwner, state: str) -> None:
        """Ends a connection that the person or the network has refused. Raises: ConnectionNotPending."""
        await self.stores.account_connections.take(owner, state)

    async def _exchange(self, pending: PendingConnection, state: str, code: str) -> Grant:
        oauth = self.networks.get(pending.network)
        if oauth is None:
            raise Conflict(f"This server has no app at {pending.network.value} any more.")
        app = OAuthApp(pending.client_id, pending.client_secret)
        authorization = Authorization(app, self.redirect_uri, state, pending.verifier)
        async with domain_errors(pending.network, [code, pending.verifier, pending.client_secret or ""]):
            return await oauth.exchange(pending.base_url, authorization, code)

    async def _connect(
        self, owner: ConnectionOwner, actor: Actor, pending: PendingConnection, grant: Grant, verified: VerifiedAccount
    ) -> ConnectedAccount:
        organization_id, user_id = owner.user
        new = AccountToConnect(
            organization_id, pending.network, pending.name, pending.base_url, user_id, verified, grant.lifetime
        )
        return await self.stores.accounts.connect(new, grant.secret, None, actor)

    async def _replace(
        self, actor: Actor, account_id: str, grant: Grant, verified: VerifiedAccount
    ) -> ConnectedAccount:
        account = await self.stores.accounts.get(actor.organization_id, account_id)
        if account.network_id is not None and verified.id != account.network_id:
            raise OtherAccount(f"Access was allowed to {verified.handle}, not to {account.handle}.")
        replaced = await self.stores.accounts.replace_credentials(
            account, grant.secret, verified, None, actor, grant.lifetime
        )
        await self.stores.scheduled_posts.resume_account(replaced)
        return replaced
