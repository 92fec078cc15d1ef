"""Normalization of addresses and domains, and their keyed hashes."""

import hmac
import string

import pytest
from email_validator import EmailNotValidError, validate_email
from hypothesis import example, given
from hypothesis import strategies as st

from storage.errors import Unavailable
from storage.mail.addresses import AddressKeys, normalize, normalize_all, normalize_domain

PLAIN = string.ascii_letters + string.digits + ".+_-@!"


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("Ann.Lee@Example.ORG", "ann.lee@example.org"),
        ("ann+tag@example.org", "ann+tag@example.org"),
        ("ann@bücher.example", "ann@xn--bcher-kva.example"),
        ("ann@BÜCHER.example", "ann@xn--bcher-kva.example"),
        ("ann@XN--BCHER-KVA.example", "ann@xn--bcher-kva.example"),
        ("Zoë@example.org", "zoë@example.org"),
        ("ユーザー@例え.jp", "ユーザー@xn--r8jz45g.jp"),
        ('"Ann Lee"@example.org', '"ann lee"@example.org'),
        ("a..b.@docomo.example", "a..b.@docomo.example"),
    ],
)
def test_normalize_spellings_of_one_address_gives_one_form(text: str, normalized: str) -> None:
    address = normalize(text)
    assert address is not None
    assert address.text == normalized
    assert address.domain == normalized.rpartition("@")[2]
    assert normalize(address.text) == address


INVALID_ADDRESSES = [
    "", "ann", "@example.org", "ann@", "ann@localhost", "ann@1.2.3.4", "ann@[1.2.3.4]", "a b@example.org",
    "ann@example..org", "ann@-example.org", "ann@example.org ", "ann@ex_ample.org", "<ann@example.org>",
    "ann@example.org\n", "ann@b@example.org", "x" * 65 + "@example.org", "ann@" + "a." * 125 + "org",
    "ann@xn--\ud800.org", "\ud800@example.org", "ann@example.org\0",
    *(f"ann@example.org{space}bob@example.org" for space in "\n\r\v\f\x1c\x85\u2028"),
]  # fmt: skip


@pytest.mark.parametrize("text", INVALID_ADDRESSES)
def test_normalize_invalid_address_is_none(text: str) -> None:
    assert normalize(text) is None


ADDRESSES = ["Ann@Example.org", "a..b.@docomo.example", "ann@xn--bcher-kva.example", "\u212aann@example.org", "K@A.B"]
ADDRESS_TEXTS = st.sampled_from([*INVALID_ADDRESSES, *ADDRESSES]) | st.text(PLAIN + "\n", max_size=12)


@given(st.lists(ADDRESS_TEXTS, max_size=6))
@example(["ann@example.org\nbob@example.org", "nonsense"])
@example(["ann@example.org", "ann@localhost"])
@example(["ann@example.org", "\u212aann@\u212a.example"])
@example([f"{'x' * 64}@{'a.' * 94}b"])
@example([f"{'x' * 64}@{'a.' * 94}bc"])
def test_normalize_all_agrees_with_normalize(texts: list[str]) -> None:
    assert list(normalize_all(texts)) == [normalize(each) for each in texts]


@given(st.text(PLAIN, max_size=20), st.text(string.ascii_letters + string.digits + ".-", max_size=20))
def test_normalize_fast_path_agrees_with_library(local: str, domain: str) -> None:
    text = f"{local}@{domain}"
    try:
        validated = validate_email(text, check_deliverability=False, globally_deliverable=False)
    except EmailNotValidError:
        return  # The library is stricter than the product, for example about dots.
    address = normalize(text)
    if validated.ascii_domain.rpartition(".")[2][:1].isalpha() and "." in validated.ascii_domain:
        assert address is not None
        assert address.text == f"{validated.local_part}@{validated.ascii_domain}".lower()


@pytest.mark.parametrize(
    ("text", "normalized"),
    [("Example.ORG", "example.org"), ("example.org.", "example.org"), ("bücher.example", "xn--bcher-kva.example")],
)
def test_normalize_domain_spellings_give_one_form(text: str, normalized: str) -> None:
    assert normalize_domain(text) == normalized


@pytest.mark.parametrize("text", ["", "localhost", "a b.org", "ann@example.org", "1.2.3.4", "a..org", "x" * 300])
def test_normalize_domain_invalid_is_none(text: str) -> None:
    assert normalize_domain(text) is None


def test_address_id_depends_on_key_version_organization_address() -> None:
    one, other = AddressKeys([(1, b"a" * 32)]), AddressKeys([(1, b"b" * 32)])
    hashes = {
        one.id("acme", "ann@example.org"),
        one.id("acme", "bob@example.org"),
        one.id("bcme", "ann@example.org"),
        other.id("acme", "ann@example.org"),
        AddressKeys([(2, b"a" * 32)]).id("acme", "ann@example.org"),
    }
    assert len(hashes) == 5
    assert {len(each) for each in hashes} == {34}
    assert one.id("acme", "ann@example.org") == AddressKeys([(1, b"a" * 32)]).id("acme", "ann@example.org")


@given(st.binary(min_size=1, max_size=100), st.text(max_size=20), st.text(max_size=200))
def test_address_id_is_hmac_by_organization_key(key: bytes, organization_id: str, address: str) -> None:
    organization_key = hmac.digest(key, organization_id.encode(), "sha256")
    expected = (9).to_bytes(2) + hmac.digest(organization_key, address.encode(), "sha256")
    keys = AddressKeys([(9, key)])
    assert keys.id(organization_id, address) == expected
    assert keys.ids(organization_id, address) == [expected]
    assert keys.all_ids(organization_id, [address, "x", address])[0][::2] == [expected, expected]


def test_address_ids_begin_with_id_of_newest_key() -> None:
    old_keys, both_keys = AddressKeys([(1, b"a" * 32)]), AddressKeys([(7, b"b" * 32), (1, b"a" * 32)])
    newest, older = both_keys.ids("acme", "ann@example.org")
    assert newest == both_keys.id("acme", "ann@example.org")
    assert newest[:2] == (7).to_bytes(2)
    assert older == old_keys.id("acme", "ann@example.org")
    addresses = ["ann@example.org", "bob@example.org"]
    ids_by_key = [[both_keys.ids("acme", address)[key] for address in addresses] for key in (0, 1)]
    assert both_keys.all_ids("acme", addresses) == ids_by_key


def test_address_keys_missing_raises_unavailable() -> None:
    with pytest.raises(Unavailable, match="NOROSHI_ADDRESS_KEYS"):
        AddressKeys().id("acme", "ann@example.org")
