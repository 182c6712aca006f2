"""The linear systems of the interior-point methods: M[D] = sum_j sym(Y_j D S_j^-1), dense or by conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int


Solve = Callable[[Array], Array]


class Slacks(NamedTuple):
    """Symmetric positive definite matrices with their inverses and inverse square roots, (J, m, m) each."""

    matrix: Array
    inverse: Array
    inverse_root: Array

    def part(self, chosen: slice) -> Slacks:
        """The same for some of the matrices."""
        return Slacks(self.matrix[chosen], self.inverse[chosen], self.inverse_root[chosen])


def sym(a: Float[Array, "*b m m"]) -> Float[Array, "*b m m"]:
    """The symmetric part."""
    return (a + jnp.swapaxes(a, -1, -2)) / 2


def slacks(matrix: Float[Array, "J m m"]) -> Slacks:
    """Inverse and inverse square root from one eigendecomposition each; NaN where a matrix is not positive definite."""
    values, vectors = jnp.linalg.eigh(sym(matrix))
    return from_spectrum(matrix, values, vectors)


def from_spectrum(matrix: Float[Array, "J m m"], values: Float[Array, "J m"], vectors: Float[Array, "J m m"]) -> Slacks:
    """`slacks` of matrices whose eigendecompositions are known."""
    values = jnp.where(values > 0, values, jnp.nan)[:, None, :]
    transposed = jnp.swapaxes(vectors, 1, 2)
    return Slacks(matrix, (vectors / values) @ transposed, (vectors / jnp.sqrt(values)) @ transposed)


def longest_steps(
    slack: Slacks, direction: Float[Array, "J m m"], split: int
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The largest a with S_j + a D_j positive semidefinite, for the first `split` matrices and for the others."""
    root = slack.inverse_root
    least = jnp.linalg.eigvalsh(sym(root @ direction @ root))[:, 0]

    def longest(values: Array) -> Array:
        value = jnp.min(values)
        return jnp.where(value < 0, -1.0 / jnp.where(value < 0, value, -1.0), jnp.inf)

    return longest(least[:split]), longest(least[split:])


def dense_solver(duals: Float[Array, "J m m"], inverses: Float[Array, "J m m"]) -> Solve:
    """Solves M[D] = B by a Cholesky factorisation in the m (m + 1) / 2 symmetric coordinates, refined once.

    Off-diagonal coordinates carry sqrt(2), so that the matrix is symmetric and the inner product is the trace's.
    """
    m = duals.shape[-1]
    rows, cols = np.triu_indices(m)
    place = np.zeros((m, m), int)
    place[rows, cols] = place[cols, rows] = np.arange(rows.size)
    weight = jnp.asarray(np.where(rows == cols, 1.0, np.sqrt(2.0)), duals.dtype)
    table = jnp.einsum("jac,jbd->abcd", duals, inverses)
    table = table + table.transpose(1, 0, 2, 3)
    table = table + table.transpose(0, 1, 3, 2)
    schur = table[rows, cols][:, rows, cols] * (weight[:, None] * weight) / 4
    schur = (schur + schur.T) / 2
    lower = jnp.linalg.cholesky(schur)

    def solve(right: Array) -> Array:
        b = sym(right)[rows, cols] * weight
        x = jax.scipy.linalg.cho_solve((lower, True), b)
        x = x + jax.scipy.linalg.cho_solve((lower, True), b - schur @ x)
        return (x / weight)[place]

    return solve


def conjugate_gradient_solver(
    factors: Float[Array, "J m k"],
    owner: Int[Array, " J"],
    resolvent: Float[Array, "P m m"],
    axes: Float[Array, "m m"],
    duals: Float[Array, "J1 m m"],
    inverses: Float[Array, "J1 m m"],
    *,
    tolerance: float = 1e-4,
    max_steps: int = 300,
) -> Solve:
    """Solves M[D] = B approximately, preconditioned, without forming M.

    `duals` Y_j and `inverses` S_j^-1 begin with those of G >= 0. For F_j = U_j U_j^T - A_p (`factors` U, `owner` p(j))
    the inverse slack is R_p + V_j X_j V_j^T with `resolvent` R_p = (A_p + G)^-1, V_j = R_p U_j and
    X_j = (I - U_j^T V_j)^-1, so floors of one prior share their m^3 products. The preconditioner is the diagonal of M
    in `axes`, the eigenvectors of G.
    """
    eye = jnp.eye(factors.shape[2], dtype=factors.dtype)
    v = resolvent[owner] @ factors
    small = sym(eye - jnp.swapaxes(factors, 1, 2) @ v)
    core = jax.vmap(lambda a: jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(a), True), eye))(small)
    vx = v @ core
    by_prior = jax.ops.segment_sum(duals[1:], owner, num_segments=resolvent.shape[0])

    def apply(d: Array) -> Array:
        total = duals[0] @ d @ inverses[0] + jnp.sum(by_prior @ d @ resolvent, axis=0)
        left = duals[1:] @ (d @ vx)
        return sym(total + jnp.einsum("jak,jbk->ab", left, v))

    q = axes
    y_diagonal = jnp.einsum("ab,jac,cb->jb", q, duals, q)
    s_diagonal = jnp.einsum("ab,jac,cb->jb", q, inverses, q)
    cross = jnp.einsum("ja,jb->ab", y_diagonal, s_diagonal)
    scale = (cross + cross.T) / 2

    def precondition(r: Array) -> Array:
        return q @ ((q.T @ r @ q) / scale) @ q.T

    def solve(right: Array) -> Array:
        right = sym(right)
        z = precondition(right)
        first = jnp.sum(right * z)

        def step(carry):
            x, r, p, rho, count = carry
            mp = apply(p)
            alpha = rho / jnp.sum(p * mp)
            x, r = x + alpha * p, r - alpha * mp
            z = precondition(r)
            new = jnp.sum(r * z)
            return x, r, z + new / rho * p, new, count + 1

        def going(carry):
            return (carry[3] > tolerance**2 * first) & (carry[4] < max_steps)

        return jax.lax.while_loop(going, step, (jnp.zeros_like(right), right, z, first, 0))[0]

    return solve
