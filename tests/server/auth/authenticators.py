"""Authenticators on the stores of a test."""

from collections.abc import Mapping

from server.auth.authenticators import Authenticator, SessionAuthenticator, TokenAuthenticator
from server.auth.credentials import CredentialKind
from server.auth.tokens import TokenVerifier
from storage.stores import Stores


def token_authenticators(verifier: TokenVerifier, stores: Stores) -> Mapping[CredentialKind, Authenticator]:
    """Returns the authenticator of tokens only."""
    return {CredentialKind.TOKEN: TokenAuthenticator(verifier, stores.users)}


def session_authenticators(stores: Stores) -> Mapping[CredentialKind, Authenticator]:
    """Returns the authenticator of sessions only."""
    return {CredentialKind.SESSION: SessionAuthenticator(stores.sessions, stores.users, stores.clock)}
