"""The precision gain of low-rank noise in the prior's eigenbasis: no factorisation of size n inside a loop."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.linalg.cholesky import cholesky, cholesky_solve, solve_lower
from jaxpriv.linalg.ordering import after as waiting
from jaxpriv.linalg.spectral import symmetric
from jaxpriv.priors.protocol import Prior
from jaxpriv.searches.factors import LowRankFactor
from jaxpriv.secrets.linear import LinearSecret
from jaxpriv.secrets.secret import Secret
from jaxpriv.shapes import Scalar


class Eigenbasis(eqx.Module):
    """A prior Σ = U Λ Uᵀ, diagonalised once, for searches over G = η I + L Lᵀ with few columns.

    In the coordinates Uᵀ L the posterior covariance is a diagonal plus a term of rank q, both positive semidefinite:

        Uᵀ P U = Λη/(Λ + η) + K (I + (UᵀL)ᵀ (Λ + η)⁻¹ UᵀL)⁻¹ Kᵀ,    K = Λ/(Λ + η) UᵀL

    (the Woodbury identity), so that the gain P_T⁻¹ − Σ_T⁻¹ of a secret T of k numbers costs O(n q (q + k)). The last
    difference loses digits where the release says little, and Λ has those that the eigenvalue routine has: good for
    finding a mechanism (with a nugget of at least 1e-6 of the variance), never for reporting it. Use
    `precision_gain` and `certify` for that.

    Attributes:
        values: Λ, (n,); values below n ε times the largest, rounding, count as that much.
        vectors: U, (n, n).
    """

    values: Float[Array, " n"]
    vectors: Float[Array, "n n"]

    @classmethod
    def of(cls, prior: Prior) -> Eigenbasis:
        """The one factorisation of size n."""
        values, vectors = jnp.linalg.eigh(symmetric(jnp.asarray(prior.covariance)))
        least = values.shape[0] * jnp.finfo(values.dtype).eps * jnp.max(jnp.abs(values))
        return cls(jnp.maximum(values, least), vectors)

    def into(self, factor: Float[Array, "n q"]) -> Float[Array, "n q"]:
        """Uᵀ L: the same noise in the coordinates of the basis; its Frobenius norm, the trace of the noise, stays."""
        with jax.default_matmul_precision("highest"):
            return self.vectors.T @ factor

    def out_of(self, noise: LowRankFactor) -> LowRankFactor:
        """The noise in the coordinates of the trace."""
        with jax.default_matmul_precision("highest"):
            return LowRankFactor(self.vectors @ noise.entries, noise.floor_variance)

    def rows(self, secret: Secret | LinearSecret) -> Float[Array, "k n"]:
        """The secret as a linear function of the trace in this basis, (k, n)."""
        if isinstance(secret, Secret):
            if max(secret.indices) >= self.values.shape[0]:
                raise InputError(f"secret position {max(secret.indices)} is outside the trace.")
            return self.vectors[jnp.asarray(secret.indices)]
        if isinstance(secret, LinearSecret):
            with jax.default_matmul_precision("highest"):
                return jnp.asarray(secret.weights) @ self.vectors
        raise InputError(f"a {type(secret).__name__} is not a linear function of the trace; use precision_gain.")

    def posterior_of(
        self, rows: Float[Array, "k n"], coordinates: Float[Array, "n q"], floor_variance: Scalar = 0.0
    ) -> Float[Array, "k k"]:
        """P_T, the adversary's covariance of the secret after the release, (k, k)."""
        total = self.values + floor_variance
        shrink = self.values / total
        with jax.default_matmul_precision("highest"):
            kept = (rows * (shrink * floor_variance)) @ rows.T
            reached = (rows * shrink) @ coordinates
            small = jnp.eye(coordinates.shape[1], dtype=coordinates.dtype)
            small = small + coordinates.T @ (coordinates / total[:, None])
            factor, _ = cholesky(small)
            whitened = solve_lower(factor, reached.T)
            return symmetric(kept + whitened.T @ whitened)

    def gain(
        self, rows: Float[Array, "k n"], coordinates: Float[Array, "n q"], floor_variance: Scalar = 0.0
    ) -> Float[Array, "k k"]:
        """M = P_T⁻¹ − Σ_T⁻¹, (k, k); infinite on the diagonal where P_T is singular to working precision."""
        identity = jnp.eye(rows.shape[0], dtype=rows.dtype)
        with jax.default_matmul_precision("highest"):
            after, exists = cholesky(self.posterior_of(rows, coordinates, floor_variance))
            before, possible = cholesky(waiting((rows * self.values) @ rows.T, after))
        matrix = symmetric(cholesky_solve(after, identity) - cholesky_solve(before, identity))
        usable = exists & possible
        infinite = jnp.diag(jnp.full(rows.shape[0], jnp.inf, matrix.dtype))
        return jnp.where(usable, jnp.where(usable, matrix, 0.0), infinite)
