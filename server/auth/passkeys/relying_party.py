"""The server as a relying party of WebAuthn: options for browsers, and the verification of their answers."""

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import structlog
from webauthn import (
    generate_authentication_options,
    generate_registration_options,
    verify_authentication_response,
    verify_registration_response,
)
from webauthn.helpers import (
    base64url_to_bytes,
    options_to_json_dict,
    parse_authentication_credential_json,
    parse_client_data_json,
)
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    CredentialDeviceType,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from storage.identity.passkeys.records import NewPasskey, Passkey, PasskeyRefused, PasskeyUse, WrongPasskey, user_handle

NAME = "Noroshi"
ANSWER_S = 300
"""How long a person has to answer: to choose a passkey, and to unlock it."""

MAX_CREDENTIAL_BYTES = 1023

BrowserAnswer = Mapping[str, Any]
"""A browser's PublicKeyCredential as JSON."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RelyingParty:
    """The domain that passkeys are for, and the only origin whose pages may use them."""

    id: str
    origin: str

    def registration_options(
        self, challenge: bytes, handle: bytes, address: str, name: str, existing: Sequence[Passkey]
    ) -> dict[str, Any]:
        """Returns the options to create a passkey that the person can choose without typing an address."""
        selection = AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.REQUIRED, user_verification=UserVerificationRequirement.REQUIRED
        )
        options = generate_registration_options(
            rp_id=self.id,
            rp_name=NAME,
            user_id=handle,
            user_name=address,
            user_display_name=name,
            challenge=challenge,
            timeout=ANSWER_S * 1000,
            authenticator_selection=selection,
            exclude_credentials=[PublicKeyCredentialDescriptor(each.credential) for each in existing],
        )
        return options_to_json_dict(options)

    def sign_in_options(self, challenge: bytes) -> dict[str, Any]:
        """Returns the options to sign in. They name no account: the person chooses one in the browser."""
        options = generate_authentication_options(
            rp_id=self.id,
            challenge=challenge,
            timeout=ANSWER_S * 1000,
            user_verification=UserVerificationRequirement.REQUIRED,
        )
        return options_to_json_dict(options)

    def verify_new(self, answer: BrowserAnswer, challenge: bytes, name: str) -> NewPasskey:
        """Returns the passkey that a browser has created. Raises: PasskeyRefused."""
        try:
            verified = verify_registration_response(
                credential=dict(answer),
                expected_challenge=challenge,
                expected_rp_id=self.id,
                expected_origin=self.origin,
                require_user_verification=True,
            )
            _require_top_frame(answer)
        except Exception as error:  # Anybody can send an answer, and the library's parsers raise many kinds of errors.
            log.info("new_passkey_refused", reason=str(error) or type(error).__name__)
            raise PasskeyRefused from None
        if len(verified.credential_id) > MAX_CREDENTIAL_BYTES:
            raise PasskeyRefused
        return NewPasskey(
            challenge,
            verified.credential_id,
            verified.credential_public_key,
            verified.sign_count,
            verified.credential_device_type is CredentialDeviceType.MULTI_DEVICE,
            name,
        )

    def verify_use(self, answer: BrowserAnswer, challenge: bytes, passkey: Passkey) -> PasskeyUse:
        """Returns the use of a passkey that an answer proves. Raises: WrongPasskey.

        The counter is compared later, in the transaction that stores the use.
        """
        try:
            _require_user(answer, passkey)
            verified = verify_authentication_response(
                credential=dict(answer),
                expected_challenge=challenge,
                expected_rp_id=self.id,
                expected_origin=self.origin,
                credential_public_key=passkey.key,
                credential_current_sign_count=0,
                require_user_verification=True,
            )
            _require_top_frame(answer)
        except Exception as error:  # As in verify_new.
            log.info("passkey_refused", passkey=passkey.id, reason=str(error) or type(error).__name__)
            raise WrongPasskey from None
        if (verified.credential_device_type is CredentialDeviceType.MULTI_DEVICE) != passkey.synced:
            log.info("passkey_refused", passkey=passkey.id, reason="it can't have become another kind of passkey")
            raise WrongPasskey
        return PasskeyUse(challenge, verified.new_sign_count)


def relying_party(base_url: str) -> RelyingParty | None:
    """Returns the relying party at an address; None where browsers allow no passkeys: without https, or at an IP."""
    parts = urlsplit(base_url)
    host = (parts.hostname or "").lower()
    if not host or _is_ip_address(host) or (parts.scheme != "https" and host != "localhost"):
        return None
    default_port = 443 if parts.scheme == "https" else 80
    port = "" if parts.port in (None, default_port) else f":{parts.port}"
    return RelyingParty(host, f"{parts.scheme}://{host}{port}")


def credential_of(answer: BrowserAnswer) -> bytes | None:
    """Returns the credential id of an answer, or None if it is missing or malformed."""
    id_ = answer.get("id")
    try:
        return base64url_to_bytes(id_) if isinstance(id_, str) else None
    except ValueError:
        return None


def _require_user(answer: BrowserAnswer, passkey: Passkey) -> None:
    """Raises ValueError unless the authenticator names the passkey's user. Passkeys always name a user."""
    named = parse_authentication_credential_json(dict(answer)).response.user_handle
    if named is None or not hmac.compare_digest(named, user_handle(passkey.user)):
        raise ValueError("the user handle belongs to another user")


def _require_top_frame(answer: BrowserAnswer) -> None:
    """Raises ValueError for an answer from a frame inside a page of another origin."""
    if parse_client_data_json(base64url_to_bytes(answer["response"]["clientDataJSON"])).cross_origin:
        raise ValueError("the answer is from a frame of another origin")


def _is_ip_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
