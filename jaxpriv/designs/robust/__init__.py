"""Designs that withstand a continuous set of priors."""
