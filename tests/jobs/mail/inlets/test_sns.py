"""Signatures of Amazon SNS: the published texts to sign, both versions, and messages that were changed."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobs.mail.inlets.sns import SnsMessage, is_sns_url
from jobs.providers.signed_webhooks import SignatureRefused
from tests.jobs.mail.inlets.examples import (
    SNS_CONFIRMATION,
    SNS_CONFIRMATION_TEXT,
    SNS_NOTIFICATION,
    SNS_NOTIFICATION_TEXT,
)
from tests.jobs.mail.inlets.sns_signer import SnsSigner

NOW = datetime(2026, 11, 21, tzinfo=UTC)
URL = "https://sns.us-west-2.amazonaws.com/SimpleNotificationService-f3ecfb7224c7233fe7bb5f59f96de52f.pem"


@pytest.fixture(scope="module")
def signer() -> SnsSigner:
    return SnsSigner(NOW, URL)


def verify(message: dict[str, Any], signer: SnsSigner, now: datetime = NOW) -> None:
    SnsMessage.model_validate(message).verify(signer.certificate, now)


@pytest.mark.parametrize(
    ("message", "text"),
    [(SNS_NOTIFICATION, SNS_NOTIFICATION_TEXT), (SNS_CONFIRMATION, SNS_CONFIRMATION_TEXT)],
    ids=["notification", "confirmation"],
)
@pytest.mark.parametrize("version", ["1", "2"])
def test_published_message_is_verified(message: dict[str, Any], text: str, version: str, signer: SnsSigner) -> None:
    signed = signer.signed(message, version)
    assert SnsMessage.model_validate(signed).signed_text.decode() == text
    verify(signed, signer)
    for name in text.splitlines()[::2]:
        if name != "Type":
            with pytest.raises(SignatureRefused):
                verify(signed | {name: f"{signed[name]}."}, signer)


def test_message_without_subject_is_verified(signer: SnsSigner) -> None:
    message = {name: value for name, value in SNS_NOTIFICATION.items() if name != "Subject"}
    signed = signer.signed(message)
    verify(signed, signer)
    with pytest.raises(SignatureRefused):
        verify(signed | {"Subject": "My subject"}, signer)


def test_other_signature_is_refused(signer: SnsSigner) -> None:
    signed = signer.signed(SNS_NOTIFICATION)
    for change in ({"SignatureVersion": "2"}, {"Signature": "%"}, {"Signature": ""}):
        with pytest.raises(SignatureRefused, match="does not match"):
            verify(signed | change, signer)
    with pytest.raises(SignatureRefused, match="does not match"):
        verify(signed, SnsSigner(NOW, URL))


def test_certificate_must_be_valid(signer: SnsSigner) -> None:
    signed = signer.signed(SNS_NOTIFICATION)
    for days in (-1, 1):
        with pytest.raises(SignatureRefused, match="not valid now"):
            verify(signed, signer, NOW + timedelta(days=days))
    with pytest.raises(SignatureRefused, match="no certificate"):
        SnsMessage.model_validate(signed).verify(b"<html>", NOW)


@pytest.mark.parametrize(
    "url", [URL, "https://sns.cn-north-1.amazonaws.com.cn/x.pem", SNS_CONFIRMATION["SubscribeURL"]]
)
def test_address_of_sns_is_accepted(url: str) -> None:
    assert is_sns_url(url)


@pytest.mark.parametrize(
    "url",
    [
        URL.replace("https", "http"),
        URL.replace(".com/", ".com.evil.example/"),
        URL.replace(".com/", ".com:8443/"),
        URL.replace("sns.", "sns.evil.example/sns."),
        URL.replace("sns.us-west-2", "bucket.s3"),
        URL.replace("https://", "https://evil.example@"),
        URL.replace(".com/", ".com@evil.example/"),
        URL.replace(".com/", ".com\\@evil.example/"),
        URL.replace("sns.us-west-2", "sns.evil.example#"),
        f"{URL}\n",
        "",
    ],
)
def test_other_address_is_refused(url: str) -> None:
    assert not is_sns_url(url)
