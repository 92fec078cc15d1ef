"""Signs messages as Amazon SNS does, by a key of the test."""

import base64
from datetime import datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from jobs.mail.inlets.sns import SnsMessage

HASHES: dict[str, hashes.HashAlgorithm] = {"1": hashes.SHA1(), "2": hashes.SHA256()}


class SnsSigner:
    """A key, and its certificate, which is valid for an hour around `now`."""

    def __init__(self, now: datetime, certificate_url: str) -> None:
        self._key = generate_private_key(65_537, 2048)
        self._url = certificate_url
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sns.amazonaws.com")])
        builder = x509.CertificateBuilder(name, name, self._key.public_key(), x509.random_serial_number())
        valid = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(hours=1))
        self.certificate = valid.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)

    def signed(self, message: dict[str, Any], version: str = "1") -> dict[str, Any]:
        """Returns the message with its signature."""
        fields = message | {"SignatureVersion": version, "SigningCertURL": self._url, "Signature": ""}
        text = SnsMessage.model_validate(fields).signed_text
        signature = self._key.sign(text, PKCS1v15(), HASHES[version])
        return fields | {"Signature": base64.b64encode(signature).decode()}
