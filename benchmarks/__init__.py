"""Measurements, never asserted: `python -m benchmarks` runs them all and prints tables."""
