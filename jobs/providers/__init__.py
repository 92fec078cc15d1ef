"""Clients of outside services: one protocol per kind of service, one class per provider."""
