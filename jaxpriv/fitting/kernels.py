"""Two kernels of moving things that tinygp does not have: integrated Ornstein–Uhlenbeck, free and damped.

Both are position processes whose velocity is (nearly) an Ornstein–Uhlenbeck process, and both have a two-dimensional
state-space form, so that tinygp's quasiseparable solver handles them in O(n).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from tinygp.kernels.quasisep import Quasisep
from tinygp.solvers.quasisep.core import DiagQSM, StrictLowerTriQSM, SymmQSM


def _excess(a: Float[Array, ""]) -> Float[Array, ""]:
    """a + e^{−a} − 1 for a ≥ 0, without cancellation near zero."""
    small = a < 1e-2
    series = a**2 * (1 / 2 - a * (1 / 6 - a * (1 / 24 - a * (1 / 120 - a * (1 / 720 - a / 5040)))))
    return jnp.where(small, series, a + jnp.expm1(-a))


def _mean_decay(x: Float[Array, ""]) -> Float[Array, ""]:
    """(1 − e^{−x})/x for x ≥ 0, equal to 1 at zero and with a finite derivative there."""
    small = x < 1e-5
    safe = jnp.where(small, 1.0, x)
    return jnp.where(small, 1.0 - x * (1 / 2 - x / 6), -jnp.expm1(-safe) / safe)


class IntegratedOU(Quasisep):
    """Position whose velocity is an Ornstein–Uhlenbeck process: sd_velocity² times

        2τ min(s, t) + τ²(e^{−s/τ} + e^{−t/τ} − 1 − e^{−|t−s|/τ}),   s, t counted from `origin`,

    plus start_sd², the variance of the position at the origin. Without it the first position would be known exactly,
    and a privacy loss computed from the kernel would be far too large; it is an arbitrary constant of large variance
    in a prior and zero inside a likelihood that removes the mean. Valid at times from `origin` on. Units: times and τ
    in seconds, sd_velocity in metres per second, start_sd in metres (or any consistent units).
    """

    sd_velocity: Float[Array, ""] | float
    tau: Float[Array, ""] | float
    origin: Float[Array, ""] | float = 0.0
    start_sd: Float[Array, ""] | float = 0.0

    def design_matrix(self) -> Array:
        return jnp.array([[0.0, 1.0], [0.0, -1.0 / self.tau]])

    def stationary_covariance(self) -> Array:
        raise NotImplementedError("the integrated Ornstein-Uhlenbeck process has no stationary law")

    def observation_model(self, X: Array) -> Array:
        del X
        return jnp.array([1.0, 0.0])

    def transition_matrix(self, X1: Array, X2: Array) -> Array:
        decayed = jnp.exp(-(X2 - X1) / self.tau)
        moved = -self.tau * jnp.expm1(-(X2 - X1) / self.tau)
        return jnp.array([[1.0, 0.0], [moved, decayed]])

    def evaluate(self, X1: Array, X2: Array) -> Array:
        first = (jnp.minimum(X1, X2) - self.origin) / self.tau
        gap = jnp.abs(X1 - X2) / self.tau
        scale = jnp.square(self.sd_velocity * self.tau)
        return scale * (2.0 * _excess(first) + jnp.expm1(-first) * jnp.expm1(-gap)) + jnp.square(self.start_sd)

    def evaluate_diag(self, X: Array) -> Array:
        return self.evaluate(X, X)

    def to_symm_qsm(self, X: Array) -> SymmQSM:
        """The generators for this non-stationary process: K_ij = h Φ(t_j → t_i) Cov(state_j, x_j) for i > j."""
        previous = jnp.append(X[0], X[:-1])
        a = jax.vmap(lambda s, t: self.transition_matrix(s, t).T)(previous, X)
        variance = jax.vmap(self.evaluate_diag)(X)
        decayed = -jnp.expm1(-(X - self.origin) / self.tau)
        q = jnp.stack([variance, jnp.square(self.sd_velocity) * self.tau * decayed], axis=1)
        return SymmQSM(diag=DiagQSM(d=variance), lower=StrictLowerTriQSM(p=a[:, 0, :], q=q, a=a))


class DampedIOU(Quasisep):
    """Stationary position process with two time scales: sd² (b e^{−ar} − a e^{−br})/(b − a), a = 1/slow, b = 1/fast.

    Equal scales give Matérn-3/2, slow → ∞ the integrated Ornstein–Uhlenbeck process (velocity time scale `fast`),
    fast → 0 the Ornstein–Uhlenbeck process. The order of the two does not matter.
    """

    sd: Float[Array, ""] | float
    slow: Float[Array, ""] | float
    fast: Float[Array, ""] | float

    def _rates(self) -> tuple[Array, Array]:
        return 1.0 / jnp.maximum(self.slow, self.fast), 1.0 / jnp.minimum(self.slow, self.fast)

    def design_matrix(self) -> Array:
        a, b = self._rates()
        return jnp.array([[0.0, 1.0], [-a * b, -(a + b)]])

    def stationary_covariance(self) -> Array:
        a, b = self._rates()
        return jnp.diag(jnp.array([1.0, a * b]))

    def observation_model(self, X: Array) -> Array:
        del X
        return jnp.array([self.sd, 0.0])

    def transition_matrix(self, X1: Array, X2: Array) -> Array:
        a, b = self._rates()
        gap = X2 - X1
        response = gap * jnp.exp(-a * gap) * _mean_decay((b - a) * gap)
        return jnp.array(
            [[jnp.exp(-a * gap) + a * response, -a * b * response], [response, jnp.exp(-b * gap) - a * response]]
        )

    def evaluate(self, X1: Array, X2: Array) -> Array:
        a, b = self._rates()
        gap = jnp.abs(X1 - X2)
        return jnp.square(self.sd) * jnp.exp(-a * gap) * (1.0 + a * gap * _mean_decay((b - a) * gap))

    def evaluate_diag(self, X: Array) -> Array:
        return jnp.square(self.sd) * jnp.ones_like(X)
