"""The one place that factorises matrices in JAX."""
