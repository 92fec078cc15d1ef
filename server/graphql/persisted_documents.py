"""Finds the documents that clients request by a hash or an id, and lets restricted roles execute trusted ones only.

Trusted documents come from a manifest that the operator chose, and from that of the built web client. Automatic
persisted queries are saved by their first sender, by the protocol of Apollo: a request with a hash alone is refused
with PERSISTED_QUERY_NOT_FOUND, and the client then sends hash and text.
"""

import re
from collections.abc import Callable, Hashable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Protocol

from graphql import GraphQLError

from server.graphql.documents import OperationRefused, OperationRequest
from storage.errors import BadUserInput, Forbidden

NOT_FOUND = "PERSISTED_QUERY_NOT_FOUND"
MESSAGE = "PersistedQueryNotFound"
"""Apollo's clients look for this message or the code."""


class DocumentStore(Protocol):
    """Texts by their hexadecimal SHA-256, which may be forgotten at any time."""

    async def find(self, sha256: str, /) -> str | None:
        """Returns the text; None if it is missing."""

    async def save(self, sha256: str, text: str, /) -> None:
        """Saves the text."""


def _all_roles_may(_roles: AbstractSet[Hashable]) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class TrustedDocuments:
    """The texts of all manifests by their ids, and which viewers may execute others."""

    texts: Mapping[str, str] = field(default_factory=dict)
    may_send_others: Callable[[AbstractSet[Hashable]], bool] = _all_roles_may
    """Returns whether viewers with these roles may send documents that are in no manifest."""


class PersistedDocuments:
    """The documents that requests name by `documentId` or by `extensions.persistedQuery`."""

    def __init__(self, trusted: TrustedDocuments | None = None, store: DocumentStore | None = None) -> None:
        """Without `store`, only documents of the manifests are found."""
        self._trusted, self._store = trusted or TrustedDocuments(), store
        self._trusted_texts = frozenset(self._trusted.texts.values())

    def require_trusted(self, query: str, roles: AbstractSet[Hashable]) -> None:
        """Raises: Forbidden if viewers with these roles may execute trusted documents only, and this is none."""
        if query not in self._trusted_texts and not self._trusted.may_send_others(roles):
            raise Forbidden("Your roles may execute only the documents that this server trusts.")

    async def find(self, request: OperationRequest, roles: AbstractSet[Hashable]) -> OperationRequest:
        """Returns the request with the text of its document.

        Raises: OperationRefused if the text is missing; Forbidden; BadUserInput for the hash of another text.
        """
        id_ = request.document_id
        if id_ is not None and not request.query:
            request = replace(request, query=await self._text(id_, roles))
        elif id_ is not None and id_ != _sha256(request.query):
            raise BadUserInput("extensions.persistedQuery.sha256Hash", "the SHA-256 of `query`, in hexadecimal")
        self.require_trusted(request.query, roles)
        return request

    async def save(self, id_: str, query: str) -> None:
        """Saves a valid document for requests with its hash alone."""
        if self._store is not None:
            await self._store.save(id_, query)

    async def _text(self, id_: str, roles: AbstractSet[Hashable]) -> str:
        text = self._trusted.texts.get(id_)
        if text is None and _is_sha256(id_) and self._store is not None and self._trusted.may_send_others(roles):
            text = await self._store.find(id_)
        if text is None:
            # Clients answer "not found" with the text, which these viewers may not send.
            self.require_trusted("", roles)
            raise OperationRefused([GraphQLError(MESSAGE, extensions={"code": NOT_FOUND})])
        return text


def _sha256(query: str) -> str:
    return sha256(query.encode("utf-8", "surrogatepass")).hexdigest()


def _is_sha256(id_: str) -> bool:
    return re.fullmatch("[0-9a-f]{64}", id_) is not None
