"""Passkeys by WebAuthn: the relying party, and ceremonies that wait for a browser's answer."""
