"""Passkeys of local accounts: public keys by which people sign in without a password."""
