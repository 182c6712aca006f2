"""The restricted log-likelihood of a trace under a kernel family, dense or in O(n), and its gradient.

With K the covariance (nugget included), F the n × p matrix of mean functions and
P = K⁻¹ − K⁻¹F(FᵀK⁻¹F)⁻¹FᵀK⁻¹,

    ℓ = −½ [ yᵀPy + log|K| + log|FᵀK⁻¹F| − log|FᵀF| + (n − p) log 2π ]

(Harville, JASA 1977); with p = 0 it is the ordinary log-likelihood of a zero-mean process. Everything here is in
standard units and on padded arrays: a padded point has unit variance, no correlation and value zero, so it adds
exactly nothing, and one compilation serves every trace of a bucket.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from tinygp.kernels import Kernel
from tinygp.kernels.quasisep import Quasisep
from tinygp.noise import Diagonal
from tinygp.solvers import QuasisepSolver
from tinygp.solvers.quasisep.core import DiagQSM, StrictLowerTriQSM, SymmQSM

from jaxpriv.fitting.families import Family
from jaxpriv.linalg.cholesky import cholesky, log_determinant, solve_lower
from jaxpriv.precision import double_precision


MEANS = {"zero": 0, "constant": 1, "linear": 2}
_SMALLEST_BUCKET = 32


class PaddedTrace(NamedTuple):
    """A trace in standard units, padded to a bucket's length (host arrays until they enter a compiled function)."""

    times: Float[Array | np.ndarray, " n"]
    values: Float[Array | np.ndarray, " n"]
    means: Float[Array | np.ndarray, "n 2"]  # a mean function that is not used is a column of zeros
    present: Bool[Array | np.ndarray, " n"]
    log_gram: Float[Array | np.ndarray, ""]  # log|FᵀF|
    period: Float[Array | np.ndarray, ""]


@contextmanager
def on_host() -> Iterator[None]:
    """Double precision on the CPU: a fit is a chain of hundreds of tiny evaluations, which an accelerator delays."""
    with ExitStack() as stack:
        stack.enter_context(double_precision())
        with suppress(RuntimeError):  # no CPU backend was enabled: use what there is
            stack.enter_context(jax.default_device(jax.local_devices(backend="cpu")[0]))
        yield


def bucket_size(n: int) -> int:
    """The padded length for n points: 32, 48, 64, 96, 128, 192 …, so that padding wastes at most a third."""
    size = _SMALLEST_BUCKET
    while size < n:
        size = size * 3 // 2 if (size & (size - 1)) == 0 else size * 4 // 3
    return size


def pad_trace(times: np.ndarray, values: np.ndarray, mean: str, period: float | None) -> PaddedTrace:
    """Pad times (n,) and values (n,), both in standard units, to their bucket, on the host."""
    n, size, p = times.size, bucket_size(times.size), MEANS[mean]
    columns = np.stack([np.ones(n), times - np.mean(times)], axis=1)[:, :p]
    log_gram = float(np.linalg.slogdet(columns.T @ columns)[1]) if p else 0.0
    means = np.zeros((size, 2))
    means[:n, :p] = columns
    padded_times = np.full(size, times[-1])
    padded_times[:n] = times
    padded_values = np.zeros(size)
    padded_values[:n] = values
    present = np.arange(size) < n
    return PaddedTrace(
        padded_times, padded_values, means, present, np.asarray(log_gram), np.asarray(1.0 if period is None else period)
    )


def _kernel(family: Family, structured: bool, parameters: Float[Array, " k"], trace: PaddedTrace) -> Kernel:
    build = family.structured if structured else family.build
    assert build is not None
    arguments = tuple(parameters[:-1])
    return build(*arguments, trace.period) if family.periodic else build(*arguments)


def padded_covariance(family: Family, parameters: Float[Array, " k"], trace: PaddedTrace) -> Float[Array, "n n"]:
    """The covariance with the nugget, and the identity on padded points."""
    kernel = _kernel(family, False, parameters, trace)
    both = trace.present[:, None] & trace.present[None, :]
    times = jnp.asarray(trace.times)
    covariance = jnp.where(both, kernel(times, times), 0.0)
    return covariance + jnp.diag(jnp.where(trace.present, jnp.square(parameters[-1]), 1.0))


def _whiten_dense(family: Family, parameters: Array, trace: PaddedTrace, right: Array) -> tuple[Array, Array, Array]:
    factor, exists = cholesky(padded_covariance(family, parameters, trace))
    return solve_lower(factor, right), log_determinant(factor), exists


def _whiten_structured(
    family: Family, parameters: Array, trace: PaddedTrace, right: Array
) -> tuple[Array, Array, Array]:
    kernel = _kernel(family, True, parameters, trace)
    assert isinstance(kernel, Quasisep)
    times = jnp.asarray(trace.times)
    full = kernel.to_symm_qsm(times)
    here = trace.present
    matrix = SymmQSM(
        diag=DiagQSM(d=jnp.where(here, full.diag.d + jnp.square(parameters[-1]), 1.0)),
        lower=StrictLowerTriQSM(
            p=jnp.where(here[:, None], full.lower.p, 0.0),
            q=jnp.where(here[:, None], full.lower.q, 0.0),
            a=full.lower.a,
        ),
    )
    nothing = Diagonal(jnp.zeros_like(times))
    solver = QuasisepSolver(kernel, times, nothing, covariance=matrix)
    pivots = solver.factor.diag.d
    exists = jnp.all(jnp.isfinite(pivots) & (pivots > 0.0))
    return solver.solve_triangular(right), 2.0 * jnp.sum(jnp.log(pivots)), exists


def restricted_loglik(
    log_parameters: Float[Array, " k"], trace: PaddedTrace, family: Family, structured: bool
) -> Float[Array, ""]:
    """ℓ in nats, standard units; −inf where the covariance is not positive definite to working precision."""
    parameters = jnp.exp(log_parameters)
    right = jnp.concatenate([trace.values[:, None], trace.means], axis=1)
    whiten = _whiten_structured if structured else _whiten_dense
    white, log_determinant_, exists = whiten(family, parameters, trace, right)
    residual, total = white[:, 0], log_determinant_
    columns, used = [white[:, 1], white[:, 2]], jnp.any(jnp.asarray(trace.means) != 0.0, axis=0)
    for j in range(2):  # Gram–Schmidt by hand: two columns need no factorisation
        square = jnp.where(used[j], jnp.sum(jnp.square(columns[j])), 1.0)
        total = total + jnp.log(square)
        residual = residual - columns[j] * (jnp.dot(columns[j], residual) / square)
        if j == 0:
            columns[1] = columns[1] - columns[0] * (jnp.dot(columns[0], columns[1]) / square)
    freedom = jnp.sum(trace.present) - jnp.sum(used)
    value = -0.5 * (jnp.sum(jnp.square(residual)) + total - trace.log_gram + freedom * jnp.log(2.0 * jnp.pi))
    return jnp.where(exists & jnp.isfinite(value), value, -jnp.inf)


@partial(jax.jit, static_argnames=("family", "structured"))
def loglik_and_gradient(
    log_parameters: Float[Array, " k"], trace: PaddedTrace, *, family: Family, structured: bool
) -> tuple[Float[Array, ""], Float[Array, " k"]]:
    """ℓ and its gradient in the logarithms of the parameters; compiled once per family and bucket."""
    return jax.value_and_grad(restricted_loglik)(log_parameters, trace, family, structured)


@partial(jax.jit, static_argnames=("family",))
def compiled_covariance(parameters: Float[Array, " k"], trace: PaddedTrace, *, family: Family) -> Float[Array, "n n"]:
    """`padded_covariance`, compiled once per family and bucket."""
    return padded_covariance(family, parameters, trace)
