"""What a leakage guarantee for single outputs leaves to a Kalman filter: lower bounds on its error covariance.

If C x_k + v_k meets (ε, δ) under the stationary prior, its signal-to-noise ratios, the eigenvalues of Θ^−½ K Θ^−½ with
K = C Σ Cᵀ, are at most ρ = e^τ − 1, τ = 2ε − q_l(δ). Then CᵀΘ⁻¹C ⪯ ρ Cᵀ K⁻¹ C ⪯ ρ Σ⁻¹, and the Riccati map is monotone.
In the spirit of Theorem 4.1 of Liu, Kawano and Cao (arXiv:2511.10771); the forms here are derived here, proofs in
docs/linear_systems.md. They say what is left to an eavesdropper who keeps every output up to k, not to one who also
waits for later ones. The filter itself always does at least as well as the single output: P ⪯ Γ.
"""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxpriv.errors import InputError
from jaxpriv.linalg.cholesky import cholesky, cholesky_solve, log_determinant
from jaxpriv.linalg.lyapunov import is_stable
from jaxpriv.linalg.ordering import after
from jaxpriv.linalg.riccati import discrete_riccati, updated
from jaxpriv.linalg.spectral import symmetric
from jaxpriv.priors.state_space import LinearSystem
from jaxpriv.shapes import Scalar


def ratio_bound(information: Scalar, rank: int | None = None) -> Float[Array, ""]:
    """The largest signal-to-noise ratio ρ that a budget τ = `information` allows: e^τ − 1.

    With `rank` l, for noise that meets the matrix inequality Θ ⪰ κ/(1 − κ) K of Corollary 3.7 of Liu, Kawano and Cao:
    (1 − κ)/κ = e^(τ/l) − 1, which is smaller for l > 1.
    """
    return jnp.expm1(jnp.asarray(information) / (1 if rank is None else rank))


def filter_covariance_bound(
    system: LinearSystem,
    ratio: Scalar,
    using: Literal["output", "state", "one step"] = "output",
) -> Float[Array, "n n"]:
    """A matrix below the steady-state filtered covariance P of every noise whose ratios are at most `ratio`, (n, n).

    * "output": the filter of the fictitious measurement with CᵀΘ⁻¹C = ρ Cᵀ K⁻¹ C. The best of the three, and equal to P
      for one output at the ratio itself. C must have full row rank.
    * "state": with ρ Σ⁻¹, which forgets which outputs there are; for a C that is unknown. Σ must be positive definite.
    * "one step": (Q⁻¹ + ρ Σ⁻¹)⁻¹, in a form that allows a singular Q; weaker still.

    Zero, which is a bound, where the needed matrix is singular to working precision or A is not stable. The predicted
    covariance is then at least A P̲ Aᵀ + Q. Differentiable.
    """
    if using not in ("output", "state", "one step"):
        raise InputError(f"using is {using!r}; expected output, state or one step.")
    A, C, Q = (jnp.asarray(one) for one in (system.A, system.C, system.Q))
    stationary, usable = _stationary(system, A)
    with jax.default_matmul_precision("highest"):
        known = C if using == "output" else jnp.eye(A.shape[0], dtype=A.dtype)
        factor, exists = cholesky(known @ stationary @ known.T)
        information = jnp.asarray(ratio) * symmetric(known.T @ cholesky_solve(factor, known))
    if using == "one step":
        return jnp.where(usable & exists, updated(Q, information), 0.0)
    predicted = discrete_riccati(jnp.where(usable, A, 0.0), information, Q)
    return jnp.where(usable & exists, updated(predicted, information), 0.0)


def filter_logdet_bound(system: LinearSystem, information: Scalar, sharp: bool = True) -> Float[Array, ""]:
    """A number below log det P, P the steady-state filtered covariance, for a budget τ = `information`.

    From det P ≥ e^−τ det P⁻: log det Q − τ, and with Minkowski's determinant inequality (`sharp`, never smaller)
    n log(g β/(1 − g α)), g = e^(−τ/n), α = |det A|^(2/n), β = (det Q)^(1/n). Not ordered with the matrix bounds. −∞
    where Q is singular (then only the matrix bounds say something) or A is not stable.
    """
    A, Q = jnp.asarray(system.A), jnp.asarray(system.Q)
    n = A.shape[0]
    _, usable = _stationary(system, A)
    factor, exists = cholesky(Q)
    level = log_determinant(factor) - jnp.asarray(information)
    if sharp:
        # |det A| by QR: slogdet has no derivative at a singular A, and its Jacobian is not needed at zero.
        alpha = _absolute_determinant(after(A, factor)) ** 2
        positive = alpha > 0.0
        root = jnp.where(positive, jnp.exp(jnp.log(jnp.where(positive, alpha, 1.0)) / n), 0.0)
        level = level - n * jnp.log1p(-jnp.exp(-jnp.asarray(information) / n) * jnp.where(usable, root, 0.0))
    return jnp.where(usable & exists, level, -jnp.inf)


def _stationary(system: LinearSystem, A: Float[Array, "n n"]) -> tuple[Float[Array, "n n"], Bool[Array, ""]]:
    usable = is_stable(jax.lax.stop_gradient(A))
    safe = LinearSystem(jnp.where(usable, A, 0.0), jnp.asarray(system.Q), jnp.asarray(system.C))
    return safe.stationary, usable


def _absolute_determinant(matrix: Float[Array, "n n"]) -> Float[Array, ""]:
    return jnp.abs(jnp.linalg.det(matrix))
