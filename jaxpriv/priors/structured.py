"""What the library asks of a prior whose covariance is never formed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Array, Float

from jaxpriv.errors import InputError


LARGEST_DENSE = 5000  # coordinates up to which `covariance` assembles the matrix


class BoundedProduct(NamedTuple):
    """A matrix product and what it may be off by.

    Attributes:
        values: (n, m), the computed product.
        entries: (n, m), a bound of |computed − exact| for each entry; None where only norms are known.
        norms: (m,), a bound of the Euclidean norm of each column of computed − exact.
    """

    values: np.ndarray
    entries: np.ndarray | None
    norms: np.ndarray


@runtime_checkable
class StructuredPrior(Protocol):
    """A Gaussian belief about a trace of `size` coordinates, reached through products and solves only.

    All arrays are float64 NumPy arrays on the host and in the order of the trace. "Exact" below refers to the
    covariance that the implementation documents (a kernel at the given times, for instance), not to its rounding.

    Two things are used where a prior has them. `exact_block(indices)` gives Σ[S, S] as rational numbers and a bound of
    their error's spectral norm: certificates of nearly coinciding fixes are then tighter. `near(indices)` gives the
    positions that matter to those fixes (None: all of them) and `window(kept)` the prior of these alone: designs then
    solve there only, and are certified on the whole trace all the same.
    """

    @property
    def size(self) -> int:
        """n, the number of coordinates."""
        ...

    @property
    def nugget(self) -> float:
        """A variance s² with Σ ⪰ s² I known on paper, in squared units of the trace; a lower bound, 0 if unknown."""
        ...

    @property
    def one_sided(self) -> bool:
        """Whether products and solves are with a Σ̃ ⪯ Σ instead of Σ; `columns` is of Σ all the same.

        Noise designed and certified with such products is private under Σ itself.
        """
        ...

    @property
    def covariance(self) -> Float[Array | np.ndarray, "n n"]:
        """Σ, (n, n), for at most `LARGEST_DENSE` coordinates; InputError above."""
        ...

    def columns(self, indices: Sequence[int] | np.ndarray) -> np.ndarray:
        """Σ[:, S], (n, k): kernel values, the nugget on the diagonal included."""
        ...

    def columns_error(self, indices: Sequence[int] | np.ndarray) -> np.ndarray:
        """(n, k): a bound of |columns − exact| for each entry (zeros where the floats are what is exact)."""
        ...

    def product(self, vectors: np.ndarray) -> np.ndarray:
        """Σ V (or Σ̃ V), (n, m), for V (n, m), to working precision; nothing is claimed about its rounding."""
        ...

    def bounded_product(self, vectors: np.ndarray) -> BoundedProduct:
        """Σ V (or Σ̃ V), (n, m), for V (n, m), with a bound of every rounding since the exact covariance.

        In squared units of the values times the unit of V; bounds are as `BoundedProduct` has them.
        """
        ...

    def shifted_solve(self, shift: float, right: np.ndarray) -> np.ndarray:
        """(Σ + shift I)⁻¹ B (or with Σ̃), (n, m), for B (n, m) and shift ≥ 0 in squared units.

        A proposal: certificates check its residual.
        """
        ...

    def sample(self, key: Array) -> Float[Array, " n"]:
        """One draw from N(0, Σ), (n,), in the unit of the values, reproducible from the key."""
        ...


def require_dense(size: int) -> None:
    """Raises InputError above `LARGEST_DENSE` coordinates, before a matrix is formed."""
    if size > LARGEST_DENSE:
        raise InputError(
            f"the covariance of {size} coordinates would take {8.0 * size**2 / 2**30:.3g} GiB and is not formed above "
            f"{LARGEST_DENSE}: use columns, product and shifted_solve, or a verb that does (design for one secret)."
        )


def is_structured(prior: object) -> bool:
    """Whether a prior is a `StructuredPrior`. (`isinstance` would evaluate its covariance on Python 3.11.)"""
    return hasattr(type(prior), "bounded_product")
