"""Privacy losses as differentiable functions of a prior, a secret and the noise."""
