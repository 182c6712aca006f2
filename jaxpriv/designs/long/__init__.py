"""Designs for traces whose covariance is never formed."""
