"""Row-stochastic channels: f[x, z] is the probability that the secret x is published as z."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int, PRNGKeyArray

from jaxpriv.channels.log_domain import log_matrix_product, log_or_minus_infinity
from jaxpriv.errors import InputError


def row_sum_tolerance(dtype: np.dtype) -> float:
    """How far a row may sum from one before it is taken for a mistake: 1e-9 in float64, 64 rounding units below."""
    return max(1e-9, 64.0 * float(jnp.finfo(dtype).eps))


class Channel(eqx.Module):
    """A randomised map from n inputs to m outputs, kept as natural logarithms so that small probabilities survive.

    Inputs and outputs are positions 0 … n − 1 and 0 … m − 1 in lists that the caller keeps; they may be different
    lists. A probability of zero is −inf. Rows are checked and never rescaled: what is audited is what was given.
    All methods can be differentiated, compiled and mapped; leading axes of `log_matrix` are a batch.

    Args:
        log_matrix: log f, (..., n, m). Build it from probabilities with `from_matrix`, from unnormalised log weights
            with `from_log_weights`. Values that are being traced pass unchecked.

    Raises:
        InputError: not a matrix, empty, NaN or +inf, or a row whose exponentials do not sum to 1 (within 1e-9 in
            float64 and 64 rounding units in smaller formats; sums are taken in float64).
    """

    log_matrix: Float[Array | np.ndarray, "*batch n m"]

    def __init__(self, log_matrix: Float[Array | np.ndarray, "*batch n m"]):
        matrix = _floating(log_matrix, "log_matrix")
        if not isinstance(matrix, Tracer):
            host = np.asarray(matrix)
            if np.any(np.isnan(host)) or np.any(np.isposinf(host)):
                raise InputError(f"log_matrix holds NaN or +inf at {_first(~(host < np.inf))}; zeros are −inf.")
            _check_rows(np.exp(host.astype(np.float64)), host.dtype)
        self.log_matrix = matrix

    @classmethod
    def from_matrix(cls, matrix: Float[Array | np.ndarray, "*batch n m"]) -> Channel:
        """The channel with these probabilities, (..., n, m); rows are checked, never rescaled.

        Raises InputError: a negative entry, a value that is not finite, or a row that does not sum to 1.
        """
        array = _floating(matrix, "matrix")
        if isinstance(array, Tracer):
            return cls(log_or_minus_infinity(array))
        host = np.asarray(array).astype(np.float64)
        if not np.all(np.isfinite(host)):
            raise InputError(f"matrix holds a value that is not finite at {_first(~np.isfinite(host))}.")
        if np.any(host < 0.0):
            raise InputError(f"matrix holds a negative probability at {_first(host < 0.0)}.")
        _check_rows(host, np.dtype(array.dtype))
        if isinstance(array, np.ndarray):
            with np.errstate(divide="ignore"):
                return cls(np.log(array))
        return cls(log_or_minus_infinity(array))

    @classmethod
    def from_log_weights(cls, log_weights: Float[Array | np.ndarray, "*batch n m"]) -> Channel:
        """The channel f[x, z] ∝ exp(log_weights[x, z]): the one constructor that normalises its rows.

        Raises InputError: NaN, +inf, or a row of nothing but −inf.
        """
        weights = _floating(log_weights, "log_weights")
        if not isinstance(weights, Tracer):
            host = np.asarray(weights)
            if np.any(np.isnan(host)) or np.any(np.isposinf(host)):
                raise InputError(f"log_weights holds NaN or +inf at {_first(~(host < np.inf))}; zeros are −inf.")
            if np.any(np.all(np.isneginf(host), axis=-1)):
                raise InputError(f"row {_first(np.all(np.isneginf(host), axis=-1))} of log_weights is all −inf.")
            if isinstance(weights, np.ndarray):
                shifted = weights - np.max(weights, axis=-1, keepdims=True)
                return cls(shifted - np.log(np.sum(np.exp(shifted), axis=-1, keepdims=True)))
        return cls(jax.nn.log_softmax(weights, axis=-1))

    @classmethod
    def from_integer_weights(cls, weights: np.ndarray) -> Channel:
        """The channel of a table (n, m) of non-negative whole numbers whose rows all have the same sum.

        `IntegerTable` keeps the table itself, for exact sampling. Raises InputError: a negative weight, or rows whose
        exact sums differ.
        """
        table = np.asarray(weights)
        if table.ndim != 2 or table.size == 0 or table.dtype.kind not in "iuO":
            raise InputError(f"weights have shape {table.shape} and dtype {table.dtype}; expected integers (n, m).")
        if np.any(table < 0):
            raise InputError(f"a weight is negative at {_first(table < 0)}.")
        sums = [sum(int(w) for w in row) for row in table]
        if sums[0] == 0 or any(total != sums[0] for total in sums):
            bad = next((i for i, total in enumerate(sums) if total != sums[0]), 0)
            raise InputError(f"the rows of a table of weights need one common positive sum; row {bad} has another.")
        with np.errstate(divide="ignore"):
            return cls(np.log(table.astype(np.float64)) - np.log(float(sums[0])))

    @classmethod
    def deterministic(cls, targets: Int[Array | np.ndarray, " n"], n_outputs: int) -> Channel:
        """The channel that publishes targets[x] for x. Raises InputError for a target outside 0 … n_outputs − 1."""
        if not isinstance(targets, Tracer):
            host = np.asarray(targets)
            if host.ndim != 1 or host.size == 0 or host.dtype.kind not in "iu":
                raise InputError("targets must be a list of whole numbers, one for each input.")
            if np.any((host < 0) | (host >= n_outputs)):
                raise InputError(f"target {_first((host < 0) | (host >= n_outputs))} is outside 0 … {n_outputs - 1}.")
        hit = jnp.asarray(targets)[:, None] == jnp.arange(n_outputs)[None, :]
        return cls(jnp.where(hit, 0.0, -jnp.inf))

    @classmethod
    def constant(cls, output: Float[Array | np.ndarray, " m"], n_inputs: int) -> Channel:
        """The channel that ignores its input and draws from `output`, (m,): it reveals nothing."""
        array = _floating(np.asarray(output)[None] if not hasattr(output, "ndim") else output[None], "output")
        stack = jnp if not isinstance(array, np.ndarray) else np
        return cls.from_matrix(stack.repeat(array, n_inputs, axis=0))

    @property
    def n_inputs(self) -> int:
        """n, the number of inputs."""
        return self.log_matrix.shape[-2]

    @property
    def n_outputs(self) -> int:
        """m, the number of outputs."""
        return self.log_matrix.shape[-1]

    @property
    def matrix(self) -> Float[Array, "*batch n m"]:
        """The probabilities f, (..., n, m)."""
        return jnp.exp(self.log_matrix)

    def lift(self, distribution: Float[Array | np.ndarray, "*batch n"]) -> Float[Array, "*batch m"]:
        """λ ↦ λ f, the law of the output when the input is drawn from λ, (..., n): shape (..., m)."""
        if distribution.shape[-1] != self.n_inputs:
            raise InputError(f"a distribution over {distribution.shape[-1]} inputs does not fit {self.n_inputs} rows.")
        return jnp.einsum("...x,...xz->...z", distribution, self.matrix, precision=jax.lax.Precision.HIGHEST)

    def then(self, after: Channel) -> Channel:
        """This channel followed by `after` applied to its output (post-processing), (..., n, k) in the log domain."""
        if after.n_inputs != self.n_outputs:
            raise InputError(f"a channel of {self.n_outputs} outputs cannot be followed by one of {after.n_inputs}.")
        product = jnp.vectorize(log_matrix_product, signature="(n,m),(m,k)->(n,k)")
        return Channel(product(jnp.asarray(self.log_matrix), jnp.asarray(after.log_matrix)))

    def sample(self, key: PRNGKeyArray, inputs: Int[Array | np.ndarray, "*shape"]) -> Int[Array, "*shape"]:
        """Simulated outputs for the given inputs, of the same shape. For experiments only, never for a real release.

        The pseudo-random generator is seeded, and its float noise never draws an output much below the likeliest, so
        the law that is sampled is not the law that was audited: `IntegerTable.release` samples exactly.
        """
        if self.log_matrix.ndim != 2:
            raise InputError("sample works on one channel; use jax.vmap for a batch of them.")
        return jax.random.categorical(key, jnp.asarray(self.log_matrix)[jnp.asarray(inputs)], axis=-1)


def _floating(value: object, name: str) -> Array | np.ndarray:
    array = value if isinstance(value, (np.ndarray, jax.Array)) else np.asarray(value, dtype=np.float64)
    if array.ndim < 2 or array.size == 0:
        raise InputError(f"{name} has shape {array.shape}; expected (n, m), with a batch in front if there is one.")
    if array.dtype.kind in "iub":
        array = array.astype(float)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        raise InputError(f"{name} has dtype {array.dtype}; expected real numbers.")
    return array


def _check_rows(matrix: np.ndarray, dtype: np.dtype) -> None:
    sums = np.sum(matrix, axis=-1)
    bad = np.abs(sums - 1.0) > row_sum_tolerance(dtype)
    if np.any(bad):
        where = _first(bad)
        raise InputError(
            f"row {where} sums to {float(sums[bad][0])!r}, not to 1. Nothing is rescaled here: divide the rows by "
            "their sums yourself if that is what you mean, or pass log weights to Channel.from_log_weights."
        )


def _first(mask: np.ndarray) -> object:
    place = tuple(int(i) for i in np.argwhere(mask)[0])
    return place[0] if len(place) == 1 else place
