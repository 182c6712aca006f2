"""Many floors in one structure: what each one is, and how they multiply a block of columns."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from jaxpriv.errors import InputError


class FloorStack(eqx.Module):
    """J floors F_j(beta) = H_j (A_j + beta D_j) H_j^T - Sigma_p - s_p I, p = p(j): low rank less positive semidefinite.

    Noise of covariance G is private enough for requirement j exactly when G - F_j is positive semidefinite. `beta` is
    one over the common scale of the targets: requirements of the form loss <= tau t_j have D_j = I/t_j, and beta = 1
    is the targets as given. Floors of fewer than k directions are padded with zero columns of H and zero rows and
    columns of A and D; a floor that is zero throughout is harmless, because noise is never negative.

    `covariances` (C, n, n); `directions` H (J, n, k); `base` A and `slope` D (J, k, k) symmetric, A + beta D positive
    semidefinite; `shift` s (P,) non-negative. Prior p is covariance number covariance_index[p] plus s_p I, so a second
    nugget costs no second n x n matrix. `prior_index` p(j), `covariance_index` and `fixed` (the floors with D_j = 0)
    are static. Units: squared length throughout, D in squared length times target.
    """

    covariances: Float[Array, "C n n"]
    directions: Float[Array, "J n k"]
    base: Float[Array, "J k k"]
    slope: Float[Array, "J k k"]
    shift: Float[Array, " P"]
    prior_index: tuple[int, ...] = eqx.field(static=True)
    covariance_index: tuple[int, ...] = eqx.field(static=True)
    fixed: tuple[int, ...] = eqx.field(static=True)

    @property
    def count(self) -> int:
        """The number J of floors."""
        return self.directions.shape[-3]

    @property
    def size(self) -> int:
        """The number n of released coordinates."""
        return self.directions.shape[-2]

    @property
    def rank(self) -> int:
        """The number k of directions of each floor, padding included."""
        return self.directions.shape[-1]

    def above(self, variance: ArrayLike) -> FloorStack:
        """The floors less `variance` I: what noise on top of an independent part of that variance must still meet."""
        return eqx.tree_at(lambda s: s.shift, self, self.shift + variance)

    def frozen(self, columns: Float[Array, "J n k"]) -> FloorStack:
        """The floors that these dual columns belong to: the same, unless the floors are optimised too."""
        return self

    def core(self, beta: ArrayLike = 1.0) -> Float[Array, "J k k"]:
        """A_j + beta D_j."""
        return self.base + beta * self.slope

    def apply(self, columns: Float[Array, "J n k"]) -> tuple[Float[Array, "J n k"], Float[Array, "J n k"]]:
        """F_j(0) Z_j and D-part H_j D_j H_j^T Z_j of every floor times its own columns, without any n x n floor."""
        projected = jnp.einsum("jna,jnb->jab", self.directions, columns)
        fixed = self._expand(self.base @ projected) - self._prior_part(columns)
        return fixed, self._expand(self.slope @ projected)

    def _expand(self, small: Float[Array, "J k k"]) -> Float[Array, "J n k"]:
        return jnp.einsum("jna,jab->jnb", self.directions, small)

    def _prior_part(self, columns: Float[Array, "J n k"]) -> Float[Array, "J n k"]:
        """Sigma_p(j) Z_j + s_p(j) Z_j, one product a covariance with all of its floors' columns side by side."""
        n, k = columns.shape[-2:]
        owner = tuple(self.covariance_index[p] for p in self.prior_index)
        members, _, place = grouping(owner, self.covariances.shape[-3])
        width = members.shape[1]
        grouped = columns[members].transpose(0, 2, 1, 3).reshape(-1, n, width * k)
        product = jnp.einsum("pab,pbc->pac", self.covariances, grouped)
        product = product.reshape(-1, n, width, k).transpose(0, 2, 1, 3).reshape(-1, n, k)
        return product[place] + self.shift[jnp.asarray(self.prior_index)][:, None, None] * columns

    def prior(self, p: Array | int) -> Float[Array, "n n"]:
        """Sigma_p + s_p I."""
        covariance = self.covariances[jnp.asarray(self.covariance_index)[p]]
        return covariance + self.shift[p] * jnp.eye(self.size, dtype=covariance.dtype)

    def factors(self, beta: ArrayLike = 1.0) -> Float[Array, "J n k"]:
        """U_j with F_j(beta) = U_j U_j^T - Sigma_p(j) - s_p(j) I."""
        values, vectors = jnp.linalg.eigh(self.core(beta))
        return self.directions @ (vectors * jnp.sqrt(jnp.maximum(values, 0.0))[:, None, :])

    def dense(self, beta: ArrayLike = 1.0) -> Float[Array, "J n n"]:
        """Every floor as an n x n matrix; for small n."""
        low = jnp.einsum("jna,jab,jmb->jnm", self.directions, self.core(beta), self.directions)
        priors = jax.vmap(self.prior)(jnp.arange(len(self.covariance_index)))
        return low - priors[jnp.asarray(self.prior_index)]

    def curvature(self) -> Float[Array, ""]:
        """A bound on the largest eigenvalue of any -F_j, from the row sums of |Sigma| in a weighting close to its
        Perron vector (Collatz and Wielandt); tight for covariances and O(P n^2)."""
        magnitude = jnp.abs(self.covariances)
        ones = jnp.ones(magnitude.shape[:-1], magnitude.dtype)

        def weigh(_: int, x: Array) -> Array:
            x = jnp.einsum("pab,pb->pa", magnitude, x)
            return jnp.maximum(x / jnp.maximum(jnp.max(x, axis=-1, keepdims=True), 1e-300), 1e-3)

        x = jax.lax.fori_loop(0, 12, weigh, ones)
        bound = jnp.max(jnp.einsum("pab,pb->pa", magnitude, x) / x, axis=-1)
        return jnp.max(bound[jnp.asarray(self.covariance_index)] + self.shift)


def grouping(owner: tuple[int, ...], owners: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Floors by owner: members (owners, width) with short rows padded, the mask of true entries, and each floor's place
    in the flattened table."""
    lists = [[j for j, p in enumerate(owner) if p == q] for q in range(owners)]
    width = max(len(entries) for entries in lists)
    members = np.zeros((owners, width), int)
    mask = np.zeros((owners, width), bool)
    place = np.zeros(len(owner), int)
    for q, entries in enumerate(lists):
        members[q, : len(entries)] = entries
        mask[q, : len(entries)] = True
        place[entries] = q * width + np.arange(len(entries))
    return members, mask, place


def inference_stack(
    covariances: Float[ArrayLike, "C n n"],
    prior_index: Sequence[int],
    cross: Float[ArrayLike, "J n k"],
    variance: Float[ArrayLike, "J k k"],
    target: Float[ArrayLike, " J"],
    *,
    mask: ArrayLike | None = None,
    shift: Float[ArrayLike, " P"] | None = None,
    covariance_index: Sequence[int] | None = None,
) -> FloorStack:
    """Floors of "loss of secret j under prior p(j) at most t_j": F = H (Var + I/t) H^T - Sigma, H = cross Var^-1.

    `cross` (J, n, k) is the covariance of the released trace with secret j under its prior, `variance` (J, k, k) the
    secret's own prior covariance, positive definite; `mask` (J, k) marks the true coordinates of secrets smaller than
    k. `target` is the largest allowed eigenvalue of H^T (C + G)^-1 H, in one over squared length. With `shift` (P,) and
    `covariance_index` (P,) prior p is covariances[covariance_index[p]] + shift[p] I, and cross and variance are those
    of that sum; without them every covariance is one prior. jit and vmap clean (the indices are static). Raises
    InputError on shapes or indices that do not fit. Source: the loss of Theorem 3.4 of Meehan and Chaudhuri, AISTATS
    2021, rewritten as a matrix inequality by a Schur complement; proof in docs/design.md.
    """
    covariances, cross, variance = jnp.asarray(covariances), jnp.asarray(cross), jnp.asarray(variance)
    owners = range(covariances.shape[0]) if covariance_index is None else covariance_index
    _check_shapes(covariances, prior_index, owners, cross)
    count, _, k = cross.shape
    index, owners = tuple(int(p) for p in prior_index), tuple(int(c) for c in owners)
    keep = jnp.ones((count, k), bool) if mask is None else jnp.asarray(mask, bool)
    shifts = jnp.zeros(len(owners)) if shift is None else jnp.asarray(shift)
    goal = jnp.broadcast_to(jnp.asarray(target, cross.dtype), (count,))
    return _inference_stack(covariances, index, owners, cross, variance, goal, keep, shifts.astype(cross.dtype))


@eqx.filter_jit
def _inference_stack(
    covariances: Array,
    prior_index: tuple[int, ...],
    owners: tuple[int, ...],
    cross: Array,
    variance: Array,
    target: Array,
    keep: Array,
    shift: Array,
) -> FloorStack:
    both = keep[:, :, None] & keep[:, None, :]
    eye = jnp.eye(cross.shape[2], dtype=cross.dtype)
    factor = jnp.linalg.cholesky(jnp.where(both, variance, eye))
    columns = jnp.swapaxes(jnp.where(keep[:, None, :], cross, 0.0), 1, 2)
    return FloorStack(
        covariances=covariances,
        directions=jnp.swapaxes(jax.scipy.linalg.cho_solve((factor, True), columns), 1, 2),
        base=jnp.where(both, variance, 0.0),
        slope=jnp.where(both, eye, 0.0) / target[:, None, None],
        shift=shift,
        prior_index=prior_index,
        covariance_index=owners,
        fixed=(),
    )


def low_rank_stack(
    covariances: Float[ArrayLike, "P n n"], prior_index: Sequence[int], factors: Float[ArrayLike, "J n k"]
) -> FloorStack:
    """Fixed floors U_j U_j^T - Sigma_p(j), the same at every scale of the targets.

    Differential privacy of one known coordinate is U = e_i / sqrt(t) with a zero covariance; a sensitivity ellipsoid
    {E u : |u| <= 1} at Gaussian parameter mu is U = E / mu with a zero covariance; a secret against an adversary who
    knows other coordinates is U = h / sqrt(t) with the covariance conditioned on them. Padding: zero columns.
    """
    covariances, factors = jnp.asarray(covariances), jnp.asarray(factors)
    owners = range(covariances.shape[0])
    _check_shapes(covariances, prior_index, owners, factors)
    count, _, k = factors.shape
    eye = jnp.broadcast_to(jnp.eye(k, dtype=factors.dtype), (count, k, k))
    index = tuple(int(p) for p in prior_index)
    return FloorStack(
        covariances=covariances,
        directions=factors,
        base=eye,
        slope=jnp.zeros_like(eye),
        shift=jnp.zeros(len(owners), factors.dtype),
        prior_index=index,
        covariance_index=tuple(owners),
        fixed=tuple(range(count)),
    )


def dense_stack(floors: Float[ArrayLike, "J n n"], rank: int | None = None) -> FloorStack:
    """Fixed floors given as any symmetric matrices, split into their positive and negative parts.

    `rank` bounds the number of positive eigenvalues of any floor; None counts them, which needs concrete values.
    """
    floors = jnp.asarray(floors)
    if floors.ndim != 3 or floors.shape[1] != floors.shape[2]:
        raise InputError(f"dense floors must be a stack of square matrices (J, n, n), got shape {floors.shape}")
    values, vectors = jnp.linalg.eigh((floors + jnp.swapaxes(floors, 1, 2)) / 2)
    if rank is None:
        rank = max(1, int(np.max(np.sum(np.asarray(values) > 0, axis=1))))
    factors = vectors[:, :, -rank:] * jnp.sqrt(jnp.maximum(values[:, None, -rank:], 0.0))
    negative = jnp.einsum("jna,ja,jma->jnm", vectors, jnp.maximum(-values, 0.0), vectors)
    return low_rank_stack(negative, range(floors.shape[0]), factors)


def join(*stacks: FloorStack) -> FloorStack:
    """All floors of several stacks over the same coordinates, in order; smaller ranks are padded."""
    if not stacks or len({stack.size for stack in stacks}) > 1:
        raise InputError(f"stacks to join need the same number of coordinates, got {[s.size for s in stacks]}")
    k = max(stack.rank for stack in stacks)
    index: list[int] = []
    fixed: list[int] = []
    owners: list[int] = []
    covariances = 0
    for stack in stacks:
        fixed += [len(index) + j for j in stack.fixed]
        index += [len(owners) + p for p in stack.prior_index]
        owners += [covariances + c for c in stack.covariance_index]
        covariances += stack.covariances.shape[0]

    def padded(x: Array, *axes: int) -> Array:
        return jnp.pad(x, [(0, k - x.shape[a] if a in axes else 0) for a in range(x.ndim)])

    return FloorStack(
        covariances=jnp.concatenate([s.covariances for s in stacks]),
        directions=jnp.concatenate([padded(s.directions, 2) for s in stacks]),
        base=jnp.concatenate([padded(s.base, 1, 2) for s in stacks]),
        slope=jnp.concatenate([padded(s.slope, 1, 2) for s in stacks]),
        shift=jnp.concatenate([s.shift for s in stacks]),
        prior_index=tuple(index),
        covariance_index=tuple(owners),
        fixed=tuple(fixed),
    )


def _check_shapes(covariances: Array, prior_index: Sequence[int], owners: Sequence[int], columns: Array) -> None:
    if covariances.ndim != 3 or covariances.shape[1] != covariances.shape[2]:
        raise InputError(f"covariances must be a stack (C, n, n), got shape {covariances.shape}")
    if columns.ndim != 3 or columns.shape[1] != covariances.shape[1]:
        raise InputError(f"the floors' columns must be (J, {covariances.shape[1]}, k), got shape {columns.shape}")
    if len(prior_index) != columns.shape[0]:
        raise InputError(f"one prior index for each floor: got {len(prior_index)} for {columns.shape[0]} floors")
    if any(not 0 <= int(p) < len(owners) for p in prior_index):
        raise InputError(f"prior indices must lie in 0..{len(owners) - 1}, got {list(prior_index)}")
    if any(not 0 <= int(c) < covariances.shape[0] for c in owners):
        raise InputError(f"covariance indices must lie in 0..{covariances.shape[0] - 1}, got {list(owners)}")
