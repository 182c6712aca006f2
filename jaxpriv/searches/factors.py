"""Structured Cholesky factors: noise covariances G = L Lᵀ + η I of which only the free entries are parameters."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Sequence
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from jaxpriv.errors import InputError
from jaxpriv.linalg.spectral import symmetric
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.shapes import Scalar


class AbstractFactor(eqx.Module):
    """Noise with covariance G = L Lᵀ + η I whose factor L has a structure.

    Attributes:
        entries: the free entries of L, in the unit of the trace; the only parameters.
        floor_variance: η ≥ 0, in squared units. A search leaves it where it is unless told otherwise (`free`).
    """

    entries: eqx.AbstractVar[Array]
    floor_variance: eqx.AbstractVar[Array]

    @property
    @abc.abstractmethod
    def factor(self) -> Float[Array, "n q"]:
        """L, (n, q)."""

    @abc.abstractmethod
    def with_factor(self, factor: Float[Array | np.ndarray, "n q"]) -> Self:
        """This structure with the entries of the given factor (those outside the structure are dropped)."""

    @property
    def size(self) -> int:
        """n, the number of coordinates of the trace."""
        return self.factor.shape[0]

    @property
    def covariance(self) -> Float[Array, "n n"]:
        """G = L Lᵀ + η I, (n, n)."""
        factor = self.factor
        floor = jnp.asarray(self.floor_variance, factor.dtype)
        with jax.default_matmul_precision("highest"):
            return symmetric(factor @ factor.T) + floor * jnp.eye(factor.shape[0], dtype=factor.dtype)

    def scaled(self, by: Scalar) -> Self:
        """The same noise with L multiplied by a number; the floor stays."""
        return eqx.tree_at(lambda one: one.entries, self, self.entries * by)

    def perturbed(self, key: Array, relative: float = 1e-2) -> Self:
        """Entries moved by normal noise of `relative` times their root mean square.

        A column of zeros has the gradient zero (a saddle point of L ↦ L Lᵀ): a start that has some is moved off it.
        """
        entries = self.entries
        spread = relative * jnp.sqrt(jnp.mean(entries**2))
        moved = entries + spread * jax.random.normal(key, entries.shape, entries.dtype)
        return eqx.tree_at(lambda one: one.entries, self, moved)

    def mechanism(self, resolution: float = 0.0) -> GaussianMechanism:
        """The mechanism with this noise."""
        floor_sd = jnp.sqrt(jnp.asarray(self.floor_variance))
        return GaussianMechanism(self.factor, floor_sd, resolution)  # pyright: ignore[reportArgumentType]


class LowRankFactor(AbstractFactor):
    """L of shape (n, q), all entries free.

    With q at least the rank of some optimal covariance no optimum is lost, but there may be spurious stationary points:
    a certificate decides.

    Raises:
        InputError: not a matrix, no column, values that are not finite, a negative floor.
    """

    entries: Float[Array, "n q"]
    floor_variance: Float[Array, ""]

    def __init__(self, factor: Float[Array | np.ndarray, "n q"], floor_variance: Scalar = 0.0):
        self.entries = _checked_matrix(factor, "factor")
        self.floor_variance = _checked_floor(floor_variance, self.entries.dtype)

    @property
    def factor(self) -> Float[Array, "n q"]:
        """L, (n, q)."""
        return self.entries

    def with_factor(self, factor: Float[Array | np.ndarray, "n q"]) -> LowRankFactor:
        """The given factor, with this floor."""
        return LowRankFactor(factor, self.floor_variance)

    @classmethod
    def from_covariance(
        cls, covariance: Float[Array | np.ndarray, "n n"], rank: int, floor_variance: Scalar = 0.0
    ) -> LowRankFactor:
        """The q = `rank` leading eigenpairs of G − η I as a factor; missing ones are zero columns (see `perturbed`)."""
        matrix = _checked_matrix(covariance, "covariance", square=True)
        if not 1 <= rank <= matrix.shape[0]:
            raise InputError(f"rank is {rank}; expected 1 to {matrix.shape[0]}.")
        values, vectors = _excess(matrix, floor_variance)
        return cls((vectors * jnp.sqrt(values))[:, -rank:], floor_variance)


class MaskedFactor(AbstractFactor):
    """L with free entries at given positions and zeros elsewhere.

    The class methods give the usual ones: `lower` (any covariance), `diagonal` (independent noise), `banded`
    (correlated over at most p steps) and `blocks` (independent between groups).
    """

    entries: Float[Array, " m"]
    floor_variance: Float[Array, ""]
    rows: Int[Array, " m"]
    columns: Int[Array, " m"]
    shape: tuple[int, int] = eqx.field(static=True)

    def __init__(
        self,
        mask: np.ndarray,
        factor: Float[Array | np.ndarray, "n q"] | None = None,
        floor_variance: Scalar = 0.0,
    ):
        """`mask`: (n, q) booleans, true where L is free. `factor`: (n, q), its entries there; the default is ones on
        the diagonal."""
        mask = np.asarray(mask, dtype=bool)
        if mask.ndim != 2 or not mask.any():
            raise InputError(f"mask has shape {mask.shape}; expected (n, q) with at least one free entry.")
        rows, columns = np.nonzero(mask)
        start = jnp.eye(*mask.shape) if factor is None else _checked_matrix(factor, "factor")
        if start.shape != mask.shape:
            raise InputError(f"factor has shape {start.shape} for a mask of shape {mask.shape}.")
        self.rows, self.columns = jnp.asarray(rows), jnp.asarray(columns)
        self.entries = start[self.rows, self.columns]
        self.floor_variance = _checked_floor(floor_variance, start.dtype)
        self.shape = (mask.shape[0], mask.shape[1])

    @property
    def factor(self) -> Float[Array, "n q"]:
        """L, (n, q)."""
        empty = jnp.zeros(self.shape, self.entries.dtype)
        return empty.at[self.rows, self.columns].set(self.entries, unique_indices=True)

    @property
    def size(self) -> int:
        """n, the number of coordinates of the trace."""
        return self.shape[0]

    def with_factor(self, factor: Float[Array | np.ndarray, "n q"]) -> MaskedFactor:
        """The entries of the given factor at the free positions."""
        factor = _checked_matrix(factor, "factor")
        if factor.shape != self.shape:
            raise InputError(f"factor has shape {factor.shape}; expected {self.shape}.")
        return eqx.tree_at(lambda one: one.entries, self, factor[self.rows, self.columns])

    def with_covariance(self, covariance: Float[Array | np.ndarray, "n n"]) -> MaskedFactor:
        """A start near G: the triangular factor of G − η I at the free positions, its rows rescaled so that every
        coordinate keeps its variance. Exact where that factor has this structure."""
        matrix = _checked_matrix(covariance, "covariance", square=True)
        if self.shape != matrix.shape:
            raise InputError(f"covariance has shape {matrix.shape} for a factor of shape {self.shape}.")
        values, vectors = _excess(matrix, self.floor_variance)
        # The triangular factor of a matrix that may be singular.
        upper = jnp.linalg.qr((vectors * jnp.sqrt(values)).T, mode="r")
        triangle = upper.T * jnp.where(jnp.diagonal(upper) < 0.0, -1.0, 1.0)
        kept = self.with_factor(triangle).factor
        wanted, norms = jnp.sum(triangle**2, axis=1), jnp.sum(kept**2, axis=1)
        return self.with_factor(kept * jnp.sqrt(wanted / jnp.where(norms > 0.0, norms, 1.0))[:, None])

    @classmethod
    def lower(cls, size: int, floor_variance: Scalar = 0.0) -> MaskedFactor:
        """Lower triangular: every covariance G ⪰ η I has one."""
        return cls(np.tril(np.ones((_positive(size), size), bool)), floor_variance=floor_variance)

    @classmethod
    def diagonal(cls, size: int, floor_variance: Scalar = 0.0) -> MaskedFactor:
        """Independent noise with a standard deviation for each coordinate."""
        return cls(np.eye(_positive(size), dtype=bool), floor_variance=floor_variance)

    @classmethod
    def banded(cls, size: int, width: int, floor_variance: Scalar = 0.0) -> MaskedFactor:
        """Lower triangular with `width` subdiagonals: the noise can be drawn from the last `width` + 1 normal numbers
        as the data arrive, and is uncorrelated over more than `width` steps."""
        if not 0 <= width < _positive(size):
            raise InputError(f"width is {width}; expected 0 to {size - 1}.")
        return cls(np.tril(np.triu(np.ones((size, size), bool), -width)), floor_variance=floor_variance)

    @classmethod
    def blocks(cls, labels: Sequence[int] | np.ndarray, floor_variance: Scalar = 0.0) -> MaskedFactor:
        """Lower triangular inside each group of coordinates with the same label, (n,); groups are independent."""
        labels = np.asarray(labels)
        if labels.ndim != 1 or labels.size == 0:
            raise InputError(f"labels has shape {labels.shape}; expected (n,), one label for each coordinate.")
        return cls(np.tril(labels[:, None] == labels[None, :]), floor_variance=floor_variance)

    @classmethod
    def groups(cls, size: int, groups: Iterable[Iterable[int]], floor_variance: Scalar = 0.0) -> MaskedFactor:
        """`blocks` from disjoint sets of positions; a position in none of them is alone."""
        labels = np.arange(_positive(size), 2 * size)
        for label, group in enumerate(groups):
            for position in group:
                if not 0 <= position < size:
                    raise InputError(f"position {position} of group {label} is outside 0 to {size - 1}.")
                if labels[position] < size:
                    raise InputError(f"position {position} is in two groups.")
                labels[position] = label
        return cls.blocks(labels, floor_variance)


def _excess(covariance: Float[Array, "n n"], floor_variance: Scalar) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:
    values, vectors = jnp.linalg.eigh(symmetric(covariance))
    return jnp.maximum(values - floor_variance, 0.0), vectors


def _positive(size: int) -> int:
    if size < 1:
        raise InputError(f"size is {size}; expected at least 1 coordinate.")
    return size


def _checked_matrix(matrix: Array | np.ndarray, name: str, square: bool = False) -> Array:
    array = jnp.asarray(matrix)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        array = array.astype(float)
    if array.ndim != 2 or 0 in array.shape or (square and array.shape[0] != array.shape[1]):
        raise InputError(f"{name} has shape {array.shape}; expected {'(n, n)' if square else '(n, q)'}.")
    if not isinstance(array, Tracer) and not bool(jnp.all(jnp.isfinite(array))):
        raise InputError(f"{name} holds values that are not finite.")
    return array


def _checked_floor(floor_variance: Scalar, dtype) -> Array:
    floor = jnp.asarray(floor_variance, dtype)
    if floor.ndim:
        raise InputError(f"floor_variance has shape {floor.shape}; expected one number.")
    if not isinstance(floor, Tracer) and not (float(floor) >= 0.0 and np.isfinite(float(floor))):
        raise InputError(f"floor_variance is {float(floor)}; expected a finite variance of at least 0.")
    return floor
