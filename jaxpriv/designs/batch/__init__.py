"""Designs for many traces at once."""
