"""The example of RFC 7636, appendix B."""

from storage.secrets.pkce import challenge


def test_challenge_of_the_example_is_that_of_the_rfc() -> None:
    verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    assert challenge(verifier) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
