"""Least-trace majorants: the Gaussian noise of least power that meets every floor at once."""
