"""Least-noise designs for pointwise maximal leakage: a floor, exact water-filling, minimum error, suppression."""
