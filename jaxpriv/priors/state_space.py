"""A linear system with constant coefficients: what the adversary knows about how a state moves."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.linalg.lyapunov import discrete_lyapunov


_SYMMETRY = 1e-8


class LinearSystem(eqx.Module):
    """x_{k+1} = A x_k + w_k and z_k = C x_k, with w_k independent, of covariance Q and any known mean.

    Args:
        A: (n, n), one step of the state.
        Q: (n, n), covariance of the disturbance of one step, in squared units of the state; it may be singular.
        C: (m, n), what is measured; the whole state by default.

    Raises:
        InputError: shapes that do not fit, values that are not finite, Q not symmetric positive semidefinite. Only
            NumPy arrays and lists are looked at; JAX arrays, traced or not, are checked for their shapes alone.
    """

    A: Float[Array | np.ndarray, "n n"]
    Q: Float[Array | np.ndarray, "n n"]
    C: Float[Array | np.ndarray, "m n"]

    def __init__(self, A: Any, Q: Any, C: Any = None):
        A, Q = as_array(A), as_array(Q)
        if A.ndim != 2 or A.shape[0] != A.shape[1] or A.shape[0] == 0:
            raise InputError(f"A has shape {A.shape}; expected a square matrix (n, n).")
        n = A.shape[0]
        if C is None:
            C = np.eye(n) if isinstance(A, np.ndarray) else jnp.eye(n, dtype=A.dtype)
        C = as_array(C)
        if Q.shape != (n, n):
            raise InputError(f"Q has shape {Q.shape}; expected {(n, n)}, as A.")
        if C.ndim != 2 or C.shape[1] != n or C.shape[0] == 0:
            raise InputError(f"C has shape {C.shape}; expected (m, {n}), one column for each state.")
        for name, array in (("A", A), ("C", C)):
            if isinstance(array, np.ndarray) and not np.all(np.isfinite(array)):
                raise InputError(f"{name} holds values that are not finite.")
        self.A, self.C = A, C
        self.Q = checked_covariance(Q, "Q") if isinstance(Q, np.ndarray) else Q

    @property
    def states(self) -> int:
        """n."""
        return self.A.shape[0]

    @property
    def outputs(self) -> int:
        """m."""
        return self.C.shape[0]

    @property
    def stationary(self) -> Float[Array, "n n"]:
        """Σ = A Σ Aᵀ + Q, (n, n), in squared units of the state; ∞ on the diagonal where A is not stable."""
        return discrete_lyapunov(jnp.asarray(self.A), jnp.asarray(self.Q))

    @property
    def signal(self) -> Float[Array, "m m"]:
        """K = C Σ Cᵀ, (m, m), the stationary covariance of what is measured."""
        C = jnp.asarray(self.C)
        product = jnp.matmul(jnp.matmul(C, self.stationary, precision="highest"), C.T, precision="highest")
        return 0.5 * (product + product.T)


def as_array(value: Any) -> Any:
    """JAX arrays as they are, everything else as float64 NumPy. Raises InputError for what is not numbers."""
    if hasattr(value, "ndim") and not isinstance(value, np.ndarray):
        return value
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("a matrix of a linear system is not an array of real numbers.") from error


def checked_covariance(matrix: np.ndarray, name: str) -> np.ndarray:
    """The exactly symmetric version of a covariance; InputError if it is far from one."""
    if not np.all(np.isfinite(matrix)):
        raise InputError(f"{name} holds values that are not finite.")
    scale = np.max(np.abs(matrix))
    if np.max(np.abs(matrix - matrix.T)) > _SYMMETRY * scale:
        raise InputError(f"{name} is not symmetric. Pass (M + M.T)/2 if that is what you mean.")
    symmetric = np.tril(matrix) + np.tril(matrix, -1).T
    lowest = np.linalg.eigvalsh(symmetric)[0]
    if lowest < -_SYMMETRY * scale:
        raise InputError(f"{name} is not positive semidefinite: its smallest eigenvalue is {lowest:.6g}; at least 0.")
    return symmetric


def require_stable(A: np.ndarray, what: str = "A") -> None:
    """InputError with the spectral radius unless all eigenvalues of A are inside the unit circle."""
    radius = float(np.max(np.abs(np.linalg.eigvals(A))))
    if not radius < 1.0:
        raise InputError(
            f"{what} is not stable: its spectral radius is {radius:.6g}, and a stationary prior needs less than 1. "
            "Give a finite horizon and an initial covariance instead, or damp the model."
        )
