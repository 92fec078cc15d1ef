"""Rules by which people earn packs of stamps: counts of what people do, and workers that evaluate them (ADR 74)."""
