"""Messages of Amazon SNS: their form, and their signatures of the versions 1 and 2.

https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html
"""

import base64
import re
from datetime import datetime
from typing import Literal

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA1, SHA256
from pydantic import BaseModel, ConfigDict, Field

from jobs.providers.signed_webhooks import SignatureRefused

_URL = re.compile(r"https://sns\.[a-z0-9-]{3,40}\.amazonaws\.com(?:\.cn)?/[!-~]*", re.ASCII)
_HASHES = {"1": SHA1, "2": SHA256}
_SIGNED = {
    "Notification": ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"),
    "SubscriptionConfirmation": ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"),
    "UnsubscribeConfirmation": ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"),
}
"""The names of the values that are signed, by the type of a message. Values that a message lacks are left out."""


class SnsMessage(BaseModel):
    """A message to an HTTPS endpoint."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True, frozen=True)

    type: Literal["Notification", "SubscriptionConfirmation", "UnsubscribeConfirmation"] = Field(alias="Type")
    message_id: str = Field(alias="MessageId")
    topic_arn: str = Field(alias="TopicArn")
    subject: str | None = Field(default=None, alias="Subject")
    message: str = Field(alias="Message")
    timestamp: str = Field(alias="Timestamp")
    token: str | None = Field(default=None, alias="Token")
    subscribe_url: str | None = Field(default=None, alias="SubscribeURL")
    signature_version: Literal["1", "2"] = Field(alias="SignatureVersion")
    signature: str = Field(alias="Signature")
    certificate_url: str = Field(alias="SigningCertURL")

    @property
    def signed_text(self) -> bytes:
        """The text that is signed: the names and values, each on a line of its own."""
        values = self.model_dump(by_alias=True)
        named = [(name, values[name]) for name in _SIGNED[self.type] if values[name] is not None]
        return "".join(f"{name}\n{value}\n" for name, value in named).encode("utf-8", "surrogatepass")

    def verify(self, certificate: bytes, now: datetime) -> None:
        """Verifies the signature by a certificate in PEM. Raises: SignatureRefused."""
        key = _public_key(certificate, now)
        try:
            signature = base64.b64decode(self.signature, validate=True)
            key.verify(signature, self.signed_text, PKCS1v15(), _HASHES[self.signature_version]())
        except (ValueError, InvalidSignature):
            raise SignatureRefused("Signature does not match the message") from None


def is_sns_url(url: str) -> bool:
    """Returns whether an address is one of SNS, by https."""
    return _URL.fullmatch(url) is not None


def _public_key(pem: bytes, now: datetime) -> RSAPublicKey:
    try:
        certificate = x509.load_pem_x509_certificate(pem)
        key = certificate.public_key()
    except (ValueError, UnsupportedAlgorithm):
        raise SignatureRefused("SigningCertURL has no certificate") from None
    if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
        raise SignatureRefused("the certificate of SigningCertURL is not valid now")
    if not isinstance(key, RSAPublicKey):
        raise SignatureRefused("the certificate of SigningCertURL has no RSA key")
    return key
