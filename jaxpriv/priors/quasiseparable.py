"""Matérn priors on traces of any length: products, solves and draws in time proportional to the length."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from tinygp.kernels import Kernel
from tinygp.solvers.quasisep.core import DiagQSM, LowerTriQSM, StrictLowerTriQSM, SymmQSM

from jaxpriv.certificates.arithmetic import SMALLEST, norm_up, square_bounds
from jaxpriv.certificates.structured_markov import Chain, Term, chain, exact_block, kernel_columns, term_product
from jaxpriv.errors import InputError
from jaxpriv.precision import double_precision, host_array
from jaxpriv.priors.markov_kernels import markov_terms
from jaxpriv.priors.process import ProcessPrior
from jaxpriv.priors.structured import BoundedProduct, require_dense


_UNIT = 2.0**-53
_REACH = 100.0  # length scales
_BLOCK = 64  # columns of a product or a solve that go through one scan
_LONGEST_BLOCK = 2**15  # fixes up to which they do
_JITTER = 1e-12  # of the variance: what a draw adds where the prior has no nugget


class QuasiseparablePrior(eqx.Module):
    """X_i = f(t_i) + e_i with f a sum of products of Matérn processes of any mean, at any times, never forming Σ.

    The covariance meant is exact: the kernel with its float64 parameters at the given float64 times, and noise_sd² on
    the diagonal. `bounded_product` and `columns_error` account for every rounding on the way from there.

    Args:
        kernel: made of `kernels.matern12`, `matern32`, `matern52` (or those of `tinygp.kernels.quasisep`) by sums,
            products and scaling.
        times: (n,), in the kernel's unit of time; any order, any spacing. Equal times are allowed where there is
            noise.
        noise_sd: standard deviation of what is independent from fix to fix, in the unit of the trace.

    Raises:
        InputError: a kernel of another kind (the message names what can be used instead), times that are empty, not
            one-dimensional or not finite, a negative noise.
    """

    kernel: Kernel
    times: Float[np.ndarray, " n"]
    noise_sd: float
    terms: tuple[Term, ...] = eqx.field(static=True)
    _order: np.ndarray
    _chains: tuple[tuple[np.ndarray, np.ndarray, np.ndarray], ...]

    def __init__(self, kernel: Kernel, times: Float[Array | np.ndarray, " n"], noise_sd: float = 0.0):
        times = host_array(times, "times", 1)
        noise_sd = float(noise_sd)
        if not 0.0 <= noise_sd < math.inf:
            raise InputError(f"noise_sd is {noise_sd}; expected a finite standard deviation of at least 0.")
        self.kernel, self.times, self.noise_sd = kernel, times, noise_sd
        self.terms = markov_terms(kernel)
        self._order = np.argsort(times, kind="stable")
        chains = (chain(term, times[self._order]) for term in self.terms)
        self._chains = tuple((one.transitions, one.size, one.error) for one in chains)

    @property
    def size(self) -> int:
        """n, the number of fixes."""
        return self.times.size

    @property
    def nugget(self) -> float:
        """noise_sd² rounded down, in squared units of the trace: the kernel itself is positive semidefinite."""
        return max(square_bounds(self.noise_sd)[0], 0.0)

    @property
    def one_sided(self) -> bool:
        """False: products are with Σ itself."""
        return False

    @property
    def covariance(self) -> Float[Array, "n n"]:
        """Σ, (n, n), rounded; InputError above 5,000 fixes."""
        require_dense(self.size)
        return ProcessPrior(self.kernel, self.times, self.noise_sd).covariance

    def joint_at(self, time: float) -> tuple[Float[Array, "n 1"], Float[Array, "1 1"]]:
        """Covariance of the fixes with the process at `time`, (n, 1), and its own variance, (1, 1)."""
        return ProcessPrior(self.kernel, self.times, self.noise_sd).joint_at(time)

    def columns(self, indices: Sequence[int] | np.ndarray) -> np.ndarray:
        """Σ[:, S], (n, k), noise_sd² on the diagonal included."""
        return self._columns(indices)[0]

    def columns_error(self, indices: Sequence[int] | np.ndarray) -> np.ndarray:
        """A bound, (n, k), of the rounding of each entry of `columns`."""
        return self._columns(indices)[1]

    def _columns(self, indices: Sequence[int] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        chosen = np.asarray(indices, dtype=int)
        values, errors = kernel_columns(self.terms, self.times, self.times[chosen])
        here = chosen, np.arange(chosen.size)
        values[here] += self.noise_sd**2
        errors[here] = (errors[here] + 2 * _UNIT * values[here]) * (1 + 2.0**-30)
        return values, errors

    def exact_block(self, indices: Sequence[int] | np.ndarray) -> tuple[list[list[Fraction]], Fraction]:
        """Σ[S, S] as rational numbers, (k, k), to about 40 digits, and a bound of the error's spectral norm."""
        return exact_block(self.terms, self.times[np.asarray(indices, dtype=int)], Fraction(self.noise_sd) ** 2)

    def product(self, vectors: Float[np.ndarray, "n m"]) -> Float[np.ndarray, "n m"]:
        """Σ V, (n, m), without a bound."""
        sorted_vectors = np.ascontiguousarray(vectors[self._order])
        total = self.noise_sd**2 * sorted_vectors
        if _together(*vectors.shape):
            with double_precision():
                arrays = self._arrays()
                total += _by_blocks(lambda block: _products(*arrays, block), sorted_vectors)
            return self._in_order(total)
        for term, parts in zip(self.terms, self._chains, strict=True):
            for j in range(sorted_vectors.shape[1]):
                forward, backward = _states(parts[0], sorted_vectors[:, j])
                total[:, j] += float(term.variance) * (forward[:, 0] + backward[:, 0] + sorted_vectors[:, j])
        return self._in_order(total)

    def bounded_product(self, vectors: Float[np.ndarray, "n m"]) -> BoundedProduct:
        """Σ V, (n, m), and a bound of its distance from the exact product for each entry."""
        sorted_vectors = np.ascontiguousarray(vectors[self._order])
        noise = self.noise_sd**2
        total = noise * sorted_vectors
        errors = 2 * _UNIT * np.abs(total)
        for term, parts in zip(self.terms, self._chains, strict=True):
            for j in range(sorted_vectors.shape[1]):
                column = sorted_vectors[:, j]
                values, error = term_product(term, Chain(*parts), *_states(parts[0], column), column)
                total[:, j] += values
                errors[:, j] += error + _UNIT * np.abs(total[:, j])
        errors = self._in_order(errors * (1 + 2.0**-30) + SMALLEST)
        norms = np.array([norm_up(errors[:, j]) for j in range(errors.shape[1])])
        return BoundedProduct(self._in_order(total), errors, norms)

    def shifted_solve(self, shift: float, right: Float[np.ndarray, "n m"]) -> Float[np.ndarray, "n m"]:
        """(Σ + shift I)⁻¹ B, (n, m), by the Cholesky factor of a quasiseparable matrix, in O(n).

        Eidelman and Gohberg (1999); Foreman-Mackey et al. (2017). NaN where the matrix is singular to working
        precision.
        """
        sorted_right = np.ascontiguousarray(right[self._order])
        solved = np.empty_like(sorted_right)
        with double_precision():
            arrays = self._arrays()
            factor = _factor(*arrays, jnp.asarray(self._variance() + self.noise_sd**2 + shift))
            if _together(*right.shape):
                return self._in_order(_by_blocks(lambda block: _solve_block(*arrays, *factor, block), sorted_right))
            for j in range(right.shape[1]):
                solved[:, j] = _solve(*arrays, *factor, jnp.asarray(sorted_right[:, j]))
        return self._in_order(solved)

    def inverse_diagonal(self, shift: float) -> Float[np.ndarray, " n"]:
        """The diagonal of (Σ + shift I)⁻¹, (n,), in O(n), without a bound."""
        with double_precision():
            return self._in_order(
                np.asarray(_inverse_diagonal(*self._arrays(), jnp.asarray(self._variance() + self.noise_sd**2 + shift)))
            )

    def sample(self, key: Array) -> Float[Array, " n"]:
        """One draw from N(0, Σ), (n,), in the unit of the values, reproducible from the key.

        Where there is no noise, 1e-12 of the variance is added to each coordinate.
        """
        with double_precision():
            arrays = self._arrays()
            extra = self.noise_sd**2 if self.noise_sd > 0.0 else _JITTER * self._variance()
            factor = _factor(*arrays, jnp.asarray(self._variance() + extra))
            drawn = _multiply(*arrays, *factor, jax.random.normal(key, (self.size,), jnp.float64))
            return jnp.asarray(self._in_order(np.asarray(drawn)))

    def near(self, indices: Sequence[int] | np.ndarray) -> np.ndarray | None:
        """Positions (k,) of fixes, ascending, within 100 length scales of those at `indices`; None where that is most.

        What is farther away has a correlation of less than 1e-40 with them, given what is nearer or not.
        """
        if not all(term.factors for term in self.terms):
            return None
        reach = _REACH * max(min(factor.lengthscale for factor in term.factors) for term in self.terms)
        chosen = np.unique(self.times[np.asarray(indices, dtype=int)])
        closest = np.searchsorted(chosen, self.times)
        before = self.times - chosen[np.maximum(closest - 1, 0)]
        after = chosen[np.minimum(closest, chosen.size - 1)] - self.times
        kept = np.flatnonzero(np.minimum(np.abs(before), np.abs(after)) <= reach)
        return kept if kept.size <= self.size // 2 else None

    def window(self, kept: np.ndarray) -> QuasiseparablePrior:
        """The prior of the k fixes at the positions `kept` (k,) alone, at the same times."""
        return QuasiseparablePrior(self.kernel, self.times[kept], self.noise_sd)

    def _variance(self) -> float:
        return float(sum((term.variance for term in self.terms), Fraction(0)))

    def _arrays(self) -> tuple[list[Array], list[Array]]:
        roots = [jnp.asarray(math.sqrt(term.variance)) for term in self.terms]
        return roots, [jnp.asarray(one[0]) for one in self._chains]

    def _in_order(self, values: np.ndarray) -> np.ndarray:
        result = np.empty_like(values)
        result[self._order] = values
        return result


def _together(n: int, columns: int) -> bool:
    """Whether columns go through a scan together: it takes little longer for many, but holds all of their states."""
    return columns >= _BLOCK // 4 and n <= _LONGEST_BLOCK


def _by_blocks(apply: Callable[[Array], Array], columns: Float[np.ndarray, "n m"]) -> Float[np.ndarray, "n m"]:
    """Blocks of one width, the last one filled up with zeros: one program."""
    n, m = columns.shape
    result = np.empty_like(columns)
    for first in range(0, m, _BLOCK):
        part = columns[:, first : first + _BLOCK]
        block = np.zeros((n, _BLOCK))
        block[:, : part.shape[1]] = part
        result[:, first : first + _BLOCK] = np.asarray(apply(jnp.asarray(block)))[:, : part.shape[1]]
    return result


def _states(transitions: np.ndarray, vector: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with double_precision():
        forward, backward = _scan_states(jnp.asarray(transitions), jnp.asarray(vector))
        return np.asarray(forward), np.asarray(backward)


@jax.jit
def _scan_states(
    transitions: Float[Array, "n m m"], vector: Float[Array, " n"]
) -> tuple[Float[Array, "n m"], Float[Array, "n m"]]:
    """What all earlier, and all later, entries of `vector` contribute to the state at each time."""
    start = jnp.zeros(transitions.shape[1])

    def forward(state: Array, entry: Any) -> tuple[Array, Array]:
        matrix, value = entry
        arrived = jnp.sum(matrix * state, axis=1)
        return arrived.at[0].add(value), arrived

    def backward(state: Array, entry: Any) -> tuple[Array, Array]:
        matrix, value = entry
        left = state.at[0].add(value)
        return jnp.sum(matrix * left[:, None], axis=0), state

    _, ahead = jax.lax.scan(forward, start, (transitions, vector))
    _, behind = jax.lax.scan(backward, start, (transitions, vector), reverse=True)
    return ahead, behind


def _generators(roots: list[Array], transitions: list[Array]) -> tuple[Array, Array, Array]:
    """p (n, m), q (n, m), a (n, m, m) with Σ_ij = p_i a_(i−1) … a_(j+1) q_j below the diagonal."""
    joined = jax.vmap(jax.scipy.linalg.block_diag)(*transitions) if len(transitions) > 1 else transitions[0]
    n = joined.shape[0]
    entering = jnp.concatenate(
        [jnp.zeros((n, part.shape[1])).at[:, 0].set(root) for root, part in zip(roots, transitions, strict=True)],
        axis=1,
    )
    return jnp.einsum("ni,nij->nj", entering, joined), entering, joined


@jax.jit
def _factor(roots: list[Array], transitions: list[Array], diagonal: Array) -> tuple[Array, Array]:
    """Diagonal (n,) and right generators (n, m) of the Cholesky factor of Σ with this constant diagonal."""
    factor = _matrix(roots, transitions, diagonal).cholesky()
    return factor.diag.d, factor.lower.q


@jax.jit
def _inverse_diagonal(roots: list[Array], transitions: list[Array], diagonal: Array) -> Array:
    return _matrix(roots, transitions, diagonal).inv().diag.d


def _matrix(roots: list[Array], transitions: list[Array], diagonal: Array) -> SymmQSM:
    p, q, a = _generators(roots, transitions)
    return SymmQSM(diag=DiagQSM(d=jnp.full(p.shape[0], diagonal)), lower=StrictLowerTriQSM(p=p, q=q, a=a))


def _lower(roots: list[Array], transitions: list[Array], pivots: Array, right: Array) -> LowerTriQSM:
    p, _, a = _generators(roots, transitions)
    return LowerTriQSM(diag=DiagQSM(d=pivots), lower=StrictLowerTriQSM(p=p, q=right, a=a))


@jax.jit
def _solve(roots: list[Array], transitions: list[Array], pivots: Array, right: Array, vector: Array) -> Array:
    lower = _lower(roots, transitions, pivots, right)
    return lower.transpose().solve(lower.solve(vector))


@jax.jit
def _solve_block(
    roots: list[Array], transitions: list[Array], pivots: Array, right: Array, block: Float[Array, "n b"]
) -> Float[Array, "n b"]:
    return jax.vmap(lambda column: _solve(roots, transitions, pivots, right, column), 1, 1)(block)


@jax.jit
def _products(roots: list[Array], transitions: list[Array], block: Float[Array, "n b"]) -> Float[Array, "n b"]:
    """Products with the process's covariance, without noise."""
    total = jnp.zeros_like(block)
    for root, matrices in zip(roots, transitions, strict=True):
        ahead, behind = jax.vmap(_scan_states, (None, 1), (2, 2))(matrices, block)
        total = total + root**2 * (ahead[:, 0] + behind[:, 0] + block)
    return total


@jax.jit
def _multiply(roots: list[Array], transitions: list[Array], pivots: Array, right: Array, vector: Array) -> Array:
    return _lower(roots, transitions, pivots, right) @ vector
