"""Links of mails by which their recipients end the mails: /unsubscribe/{token}.

The token is encrypted and authenticated, so that it shows no personal data, and only this server can make it.
"""

import base64
import hmac
from dataclasses import dataclass

import orjson
from cryptography.fernet import Fernet, InvalidToken

from storage.ids import UserKey
from storage.mongo import Mongo
from storage.secrets.shared_secrets import shared_secret

VALID_S = 400 * 86_400
"""How long a link works."""

MAX_TOKEN_CHARS = 4000
_KEY_LABEL = b"noroshi/unsubscribe-links/v1"


@dataclass(frozen=True, slots=True)
class UnsubscribeTarget:
    """The person and the address to which a mail was sent, and the language of the mail as `Language` stores it."""

    person: UserKey
    address: str
    language: str


class UnsubscribeLinks:
    """Makes and reads links. The key is derived from `secret` for this purpose only."""

    def __init__(self, base_url: str, secret: bytes) -> None:
        self._base_url = base_url.rstrip("/")
        self._fernet = Fernet(base64.urlsafe_b64encode(hmac.digest(secret, _KEY_LABEL, "sha256")))

    def link(self, target: UnsubscribeTarget) -> str:
        """Returns a new link, which works for 400 days by the clock of the host."""
        values = [*target.person, target.address, target.language]
        return f"{self._base_url}/unsubscribe/{self._fernet.encrypt(orjson.dumps(values)).decode()}"

    def open(self, token: str) -> UnsubscribeTarget | None:
        """Returns the target of a link's token; None for a forged token, and for one that is too old."""
        if len(token) > MAX_TOKEN_CHARS:
            return None
        try:
            values = orjson.loads(self._fernet.decrypt(token.encode("utf-8", "replace"), ttl=VALID_S))
        except InvalidToken:
            return None
        organization_id, user_id, address, language = values
        return UnsubscribeTarget(UserKey(organization_id, user_id), address, language)


async def unsubscribe_links(mongo: Mongo, base_url: str) -> UnsubscribeLinks:
    """Returns the links at an address, with the secret that all processes share."""
    return UnsubscribeLinks(base_url, await shared_secret(mongo, "unsubscribe_links"))
