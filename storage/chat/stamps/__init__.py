"""Stamps: the catalogue of the program, and the packs of organizations."""
