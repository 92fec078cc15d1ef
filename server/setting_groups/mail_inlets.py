"""Settings of mail providers whose webhooks are verified (docs/mail.md)."""

from typing import Annotated

from pydantic import AfterValidator
from pydantic_settings import NoDecode

from jobs.mail.inlets.sendgrid import sendgrid_key
from server.setting_groups.networks import NetworkSettings
from server.setting_groups.values import COMMA_SEPARATED, setting


def _checked_sendgrid_key(value: str) -> str:
    sendgrid_key(value)
    return value


SendGridKey = Annotated[str, AfterValidator(_checked_sendgrid_key)]


class MailInletSettings(NetworkSettings):
    """The keys by which the webhooks of SendGrid and Mailgun are signed."""

    sendgrid_keys: Annotated[tuple[SendGridKey, ...], NoDecode, COMMA_SEPARATED] = setting(
        (),
        expected="ECDSA public keys in base64, separated by commas",
        description="The verification keys of SendGrid's signed event webhooks: docs/mail.md. If unset, "
        "/ingest/sendgrid refuses requests.",
    )
    mailgun_signing_keys: Annotated[tuple[str, ...], NoDecode, COMMA_SEPARATED] = setting(
        (),
        secret=True,
        expected="signing keys, separated by commas",
        description="The HTTP webhook signing keys of Mailgun: docs/mail.md. If unset, /ingest/mailgun refuses "
        "requests.",
    )
