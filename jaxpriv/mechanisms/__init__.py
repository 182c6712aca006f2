"""Randomised maps from a trace to what is published."""
