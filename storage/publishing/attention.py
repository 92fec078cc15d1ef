"""Publications that wait because their account's credentials were refused (ADR 103).

SCHEDULED | PUBLISHING -> NEEDS_ATTENTION -> SCHEDULED | FAILED | CANCELLED. The transaction that holds an account's
first publication also marks the account. While the mark is about the account's present credentials, other due
publications of the account are held without a call.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from storage.publishing.documents import PUBLICATIONS, AccountDocument, AttentionDocument, PublicationDocument
from storage.publishing.events import report_attention_once
from storage.publishing.records import (
    AccountTarget,
    Publication,
    PublicationState,
    account_attention,
    publication_record,
)
from storage.publishing.scheduling import drop_progress, put_due_again
from storage.publishing.transitions import PublicationChange, add_attempt, claimed_publication, is_too_late, put_failed
from storage.streams.changes import Batch, DocumentKey

ACCOUNTS = "accounts"
DISCONNECTED = "FORBIDDEN", "The account is disconnected."
"""Code and message of the error of publications to a disconnected account."""

MAX_MAILED_AUTHORS = 100
"""Number of authors who are mailed that a post waits for an account. Others are notified only."""


@dataclass(slots=True)
class _AccountPublicationChange(PublicationChange):
    """A change of a publication that depends on its account."""

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the publication and its account."""
        return [(PUBLICATIONS, self.publication.id), *account_keys(self.publication)]

    def account(self, batch: Batch) -> AccountDocument:
        """Returns the account, which is never deleted."""
        (key,) = account_keys(self.publication)
        account: AccountDocument = batch.get(*key)
        return account


def _mailed_authors(account: AccountDocument) -> list[str]:
    """Returns the authors who were mailed since the account's present credentials count as refused."""
    return [] if account_attention(account) is None else account["attention"].get("mailed", [])


def account_keys(publication: Publication) -> list[DocumentKey]:
    """Returns the key of the publication's account; none for an internal target."""
    target = publication.target
    return [(ACCOUNTS, target.account_id)] if isinstance(target, AccountTarget) else []


@dataclass(slots=True)
class HoldForAttention(_AccountPublicationChange):
    """Holds a publication until its account has other credentials. Nothing was published.

    Schedules it again if the account has other credentials already. Fails it if it is too late.
    """

    code: str
    message: str
    nonce: bytes | None
    """The nonce of the credentials that were refused now; None if the account's mark is the reason."""

    def plan(self, batch: Batch) -> Publication:
        """Stores the state. Raises: ClaimLost."""
        states = PublicationState.SCHEDULED, PublicationState.PUBLISHING
        document, account = claimed_publication(batch, self.publication, *states), self.account(batch)
        if "disconnected_at" in account:
            put_failed(batch, document, *DISCONNECTED)
        elif not self._is_about(account):
            put_due_again(batch, document)
        elif is_too_late(document, batch.at):
            put_failed(batch, document, self.code, self.message)
        else:
            self._put_held(batch, document, account)
            return publication_record(document)
        self._mark(batch, account)
        return publication_record(document)

    def _is_about(self, account: AccountDocument) -> bool:
        """Returns whether the refusal is about the account's present credentials."""
        if self.nonce is None:
            return account_attention(account) is not None
        return "credentials" in account and account["credentials"]["nonce"] == self.nonce

    def _put_held(self, batch: Batch, document: PublicationDocument, account: AccountDocument) -> None:
        """Puts the publication, and the account's mark. The first post of each author under a mark is mailed."""
        document["error"] = {"code": self.code, "message": self.message}
        document |= {"state": PublicationState.NEEDS_ATTENTION.value, "wake_at": document["late_at"]}
        document.pop("claim", None)
        drop_progress(document)
        add_attempt(document, batch.at, "NEEDS_ATTENTION", f"{self.code}: {self.message}")
        author, mailed = document["author"], _mailed_authors(account)
        is_mailed = author not in mailed and len(mailed) < MAX_MAILED_AUTHORS
        is_reported = report_attention_once(batch, document, is_mailed=is_mailed)
        self.put(batch, document)
        self._mark(batch, account, author if is_reported and is_mailed else None)

    def _mark(self, batch: Batch, account: AccountDocument, mailed_author: str | None = None) -> None:
        """Marks the account, unless it is marked, and adds an author who is mailed.

        The write conflicts with a replacement at the same time.
        """
        is_marked = account_attention(account) is not None
        if not self._is_about(account) or (is_marked and mailed_author is None):
            return
        attention: AttentionDocument
        if is_marked:
            attention = account["attention"].copy()
        else:
            assert self.nonce is not None
            attention = {"code": self.code, "message": self.message, "since": batch.at, "nonce": self.nonce}
        if mailed_author is not None:
            attention["mailed"] = [*_mailed_authors(account), mailed_author]
        batch.put(ACCOUNTS, {**account, "attention": attention})


@dataclass(slots=True)
class ResumePublication(_AccountPublicationChange):
    """Schedules a held publication again, unless its account's present credentials count as refused. Idempotent.

    Leaves a publication that is too late to its worker, who fails it with the refusal.
    """

    def plan(self, batch: Batch) -> Publication:
        """Puts the publication. Raises: ClaimLost."""
        document = claimed_publication(batch, self.publication, PublicationState.NEEDS_ATTENTION)
        if account_attention(self.account(batch)) is None and not is_too_late(document, batch.at):
            put_due_again(batch, document)
        return publication_record(document)


def remove_mark(batch: Batch, publication: Publication) -> None:
    """Removes the mark of the publication's account, so that due publications call the network."""
    for key in account_keys(publication):
        account: AccountDocument | None = batch.get(*key)
        if account is not None and "attention" in account:
            unmarked = account.copy()
            del unmarked["attention"]
            batch.put(ACCOUNTS, unmarked)
