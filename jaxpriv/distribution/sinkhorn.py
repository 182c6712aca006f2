"""Entropic couplings by Sinkhorn's iteration in the log domain, with derivatives of the solution, not of the iteration.

The plan γ_ij = λ_i μ_j exp((f_i + g_j − d_ij)/η) with margins λ and μ minimises Σ γ d + η KL(γ ‖ λμᵀ). Its rows
γ_ij/λ_i ∝ v_j exp(−d_ij/η), v_j = μ_j exp(g_j/η), are the exponential mechanism with a base measure v chosen so that
the output law is μ: a coupling is distribution privacy, the exponential mechanism geo-indistinguishability, and this is
both. Pure JAX: jit, vmap and grad it.
"""

from __future__ import annotations

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int

from jaxpriv.linalg.cholesky import cholesky, cholesky_solve
from jaxpriv.shapes import Scalar


_LADDER = 12  # at most so many halvings of the scale on the way down
_BLOCK = 10  # iterations between two looks at the margin


class EntropicCoupling(eqx.Module):
    """An entropic plan and the channel that it makes.

    Attributes:
        log_channel: log C, (n, m), rows normalised: also for inputs of mass zero.
        plan: γ, (n, m).
        potentials: (f, g), (n,) and (m,): the gradients of `value` by λ and μ, up to constants.
        cost: Σ γ d, in the unit of the cost.
        value: Σ γ d + η KL(γ ‖ λμᵀ).
        error: total variation between the output law of the channel and μ; not 0, so that "the output law is μ" holds
            up to this.
        steps: iterations done.
    """

    log_channel: Float[Array, "n m"]
    plan: Float[Array, "n m"]
    potentials: tuple[Float[Array, " n"], Float[Array, " m"]]
    cost: Float[Array, ""]
    value: Float[Array, ""]
    error: Float[Array, ""]
    steps: Int[Array, ""]


def entropic_coupling(
    cost: Float[Array, "n m"],
    first: Float[Array, " n"],
    second: Float[Array, " m"],
    scale: Scalar,
    *,
    tolerance: float = 1e-13,
    max_steps: int = 20_000,
) -> EntropicCoupling:
    """The entropic coupling of λ = `first` and μ = `second` at η = `scale`, in the unit of the cost.

    The scale is lowered in halves from that of the cost, so that small ones converge too. Stops when the output law is
    within `tolerance` in total variation, or at `max_steps`; `error` says what was reached. Outputs of mass zero get
    probability zero.

    Derivatives by cost, λ, μ and η are those of the solution (implicit function theorem); they are right to the
    accuracy of the solution, and one n × n factorisation each.
    """
    cost, first, second = jnp.asarray(cost), jnp.asarray(first), jnp.asarray(second)
    eta = jnp.asarray(scale, cost.dtype)
    dual, steps = _dual(cost, first, second, eta, tolerance, max_steps)
    scores = _log(second)[None, :] + (dual[None, :] - cost) / eta
    totals = logsumexp(scores, axis=1)
    log_channel = scores - totals[:, None]
    rows = -eta * totals
    plan = first[:, None] * jnp.exp(log_channel)
    reached = jnp.einsum("i,ij->j", first, jnp.exp(log_channel), precision="highest")
    return EntropicCoupling(
        log_channel,
        plan,
        (rows, dual),
        jnp.sum(plan * jnp.where(plan > 0.0, cost, 0.0)),
        # At the optimum the dual value is the primal one, and its derivative is the envelope's.
        jnp.sum(first * rows) + jnp.sum(jnp.where(second > 0.0, second * dual, 0.0)),
        0.5 * jnp.sum(jnp.abs(reached - second)),
        steps,
    )


def _log(mass: Float[Array, " m"]) -> Float[Array, " m"]:
    return jnp.where(mass > 0.0, jnp.log(jnp.where(mass > 0.0, mass, 1.0)), -jnp.inf)


@partial(jax.custom_jvp, nondiff_argnums=(4, 5))
def _dual(cost, first, second, eta, tolerance, max_steps):
    """g, (m,), and the number of iterations."""
    log_first, log_second = _log(first), _log(second)

    def rows(dual, scale):
        return -scale * logsumexp(log_second[None, :] + (dual[None, :] - cost) / scale, axis=1)

    def columns(primal, scale):
        return -scale * logsumexp(log_first[:, None] + (primal[:, None] - cost) / scale, axis=0)

    def iterate(dual, scale):
        return jax.lax.fori_loop(0, _BLOCK, lambda _, g: columns(rows(g, scale), scale), dual)

    def error(dual):
        # Rows are exact after their own update, so that only the columns can be off.
        primal = rows(dual, eta)
        implied = dual - columns(primal, eta)
        return 0.5 * jnp.sum(second * jnp.abs(jnp.expm1(implied / eta)))

    largest = jnp.max(jnp.abs(cost))
    halvings = jnp.clip(jnp.ceil(jnp.log2(jnp.maximum(largest / eta, 1.0))), 0, _LADDER).astype(int)

    def descend(i, dual):
        return iterate(dual, eta * 2.0 ** (halvings - i).astype(cost.dtype))

    start = jax.lax.fori_loop(0, halvings, descend, jnp.zeros_like(second))

    def going(state):
        _, reached, steps = state
        return (reached > tolerance) & (steps < max_steps)

    def step(state):
        dual, _, steps = state
        dual = iterate(dual, eta)
        return dual, error(dual), steps + _BLOCK

    dual, _, steps = jax.lax.while_loop(going, step, (start, jnp.asarray(jnp.inf, cost.dtype), halvings * _BLOCK))
    return dual, steps


@_dual.defjvp
def _dual_jvp(tolerance, max_steps, primals, tangents):
    cost, first, second, eta = primals
    d_cost, d_first, d_second, d_eta = tangents
    dual, steps = _dual(cost, first, second, eta, tolerance, max_steps)
    with jax.default_matmul_precision("highest"):
        scores = _log(second)[None, :] + (dual[None, :] - cost) / eta
        totals = logsumexp(scores, axis=1)
        channel = jnp.exp(scores - totals[:, None])
        plan = first[:, None] * channel
        # Margins as they are, so that the system has its null vector exactly.
        columns = jnp.sum(plan, axis=0)
        carrying, reached = first > 0.0, columns > 0.0
        inverse = jnp.where(reached, 1.0 / jnp.where(reached, columns, 1.0), 0.0)
        gap = -eta * totals[:, None] + dual[None, :] - cost
        common = -d_cost / eta - gap * d_eta / (eta * eta)
        by_second = jnp.where(second > 0.0, d_second / jnp.where(second > 0.0, second, 1.0), 0.0)
        by_first = jnp.where(carrying, d_first / jnp.where(carrying, first, 1.0), 0.0)
        right_rows = -eta * jnp.sum(plan * (by_second[None, :] + common), axis=1)
        right_columns = -eta * jnp.sum(plan * (by_first[:, None] + common), axis=0)
        # λ df + γ dg = r and γᵀ df + μ dg = c; the constant of df is free, and fixed by the added λλᵀ.
        schur = jnp.diag(jnp.where(carrying, first, 1.0)) - (plan * inverse[None, :]) @ plan.T
        schur = schur + first[:, None] * first[None, :]
        factor, _ = cholesky(schur)
        reduced = right_rows - plan @ (inverse * right_columns)
        d_primal = cholesky_solve(factor, jnp.where(carrying, reduced, 0.0)[:, None])[:, 0]
        d_dual = inverse * (right_columns - plan.T @ d_primal)
    return (dual, steps), (d_dual, np.zeros(steps.shape, dtype=jax.dtypes.float0))
