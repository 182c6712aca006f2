"""Noise of a prescribed pattern: independent, banded, or independent of the secrets."""
