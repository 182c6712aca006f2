"""Mechanisms of least error that meet a requirement."""
