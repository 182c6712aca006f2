"""From a matrix that nearly meets its limits to a channel that meets them, in closed form.

Solvers stop with residuals. Two facts turn what they return into a channel within the limits (proofs in
docs/optimal_channels.md). The columns that meet the limits form a convex cone closed under maxima, so the smallest
column above a given one is k⁺(x) = max_y e^{−c(x, y)} k(y); and the constant column lies strictly inside the cone, so
any violation is mended by adding enough of it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.precision import double_precision


# Limits are met with this relative margin (and this many nats), so that the audit of the rounded matrix passes.
MARGIN = 1e-9
_NATS = 2e-12


def inner_limits(allowed: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
    """The limits less a margin of one part in 10⁹ and 2e-12 nats for the rounding of the final matrix."""
    inner = np.maximum(allowed * (1.0 - MARGIN) - _NATS, 0.5 * allowed)
    np.fill_diagonal(inner, 0.0)
    return inner


def mixing_weight(
    matrix: Float[np.ndarray, "n m"], output: Float[np.ndarray, " m"], allowed: Float[np.ndarray, "n n"]
) -> float:
    """Least t for which (1 − t) K + t 1 oᵀ is within the limits, rounded up; 0 if K is already.

    t = max over violated triples of R/(R + o_z (e^c − 1)), R = K[x, z] − e^c K[y, z]. Mixing is the repair for limits
    whose matrix is all but feasible; `envelope` moves less where many small entries are off.

    Raises InputError: an output distribution that is zero where a limit is violated, or a limit of zero: then no t
    below 1 exists.
    """
    probabilities = np.asarray(output, dtype=np.float64)
    worst = 0.0
    for x in range(len(matrix)):
        shrink = np.exp(-allowed[x])[:, None]
        residual = matrix[x] * shrink - matrix
        violated = residual > 0.0
        violated[x] = False
        if not np.any(violated):
            continue
        room = probabilities * (1.0 - shrink)
        if np.any(room[violated] <= 0.0):
            raise InputError(
                f"a limit of input {x} is violated where the constant output has probability zero (or the limit is "
                "zero): mixing cannot mend it. Give every output a positive probability."
            )
        worst = max(worst, float(np.max(residual[violated] / (residual[violated] + room[violated]))))
    return min(1.0, worst * (1.0 + 1e-9) + 1e-15) if worst > 0.0 else 0.0


def mix(matrix: Float[np.ndarray, "n m"], output: Float[np.ndarray, " m"], weight: float) -> Float[np.ndarray, "n m"]:
    """(1 − t) K + t 1 oᵀ."""
    return (1.0 - weight) * matrix + weight * np.asarray(output)[None, :]


def envelope(matrix: Float[np.ndarray, "n m"], allowed: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n m"]:
    """k⁺[x, z] = max_y e^{−c(x, y)} k[y, z]: the least matrix above K whose columns meet the limits, O(n² m).

    `allowed` must be closed under paths, as `Limits.allowed` is. Its rows sum to at least those of K.
    """
    with double_precision():
        return np.array(_envelope(jnp.asarray(np.exp(-allowed)), jnp.asarray(matrix, jnp.float64)))


@jax.jit
def _envelope(shrink: Float[Array, "n n"], matrix: Float[Array, "n m"]) -> Float[Array, "n m"]:
    n, m = matrix.shape
    rows = 8  # results of eight rows fit the cache while the matrix streams by
    blocks = jnp.pad(shrink, ((0, -n % rows), (0, 0))).reshape(-1, rows, n)

    def block(factors):
        def larger(y, best):
            return jnp.maximum(best, factors[:, y, None] * matrix[y][None, :])

        return jax.lax.fori_loop(0, n, larger, jnp.zeros((rows, m), matrix.dtype), unroll=4)

    return jax.lax.map(block, blocks).reshape(-1, m)[:n]


def settled(
    matrix: Float[np.ndarray, "n m"], allowed: Float[np.ndarray, "n n"], rounds: int = 16, tolerance: float = 1e-5
) -> Float[np.ndarray, "n m"]:
    """Columns that meet the limits and rows that sum to 1 within `tolerance`, by turns of envelope and rescaling.

    A channel within the limits is a fixed point. Ends with the envelope, so the limits hold; the row sums, at least 1,
    are brought to 1 by `top_up`. In practice the excess halves each round.
    """
    columns = envelope(matrix, allowed)
    for _ in range(rounds):
        sums = np.sum(columns, axis=1)
        if float(np.max(sums)) - 1.0 <= tolerance:
            break
        columns = envelope(columns / sums[:, None], allowed)
    return columns


def top_up(
    columns: Float[np.ndarray, "n m"], allowed: Float[np.ndarray, "n n"], cost: Float[np.ndarray, "n m"]
) -> tuple[Float[np.ndarray, "n m"], float]:
    """A channel from columns that meet the limits but whose rows do not sum to one; and the mass moved, at most 1.

    The columns are scaled so that the largest row sum is 1; the rest R(x) of each row, with as much t of a constant as
    makes R itself meet the limits, goes to the output where it costs least:
    K = (1 − t) a k + (t + (1 − t)(1 − a s(x))) e_o with s the row sums and a = 1/max s.
    """
    sums = np.sum(columns, axis=1)
    scaled = columns / np.max(sums)
    rest = np.maximum(0.0, 1.0 - np.sum(scaled, axis=1))
    weight = _constant_share(rest, allowed)
    scaled = (1.0 - weight) * scaled
    # Not recomputed as a difference: its rounding would break the limits of the smallest entries of a column.
    rest = weight + (1.0 - weight) * rest
    target = int(np.argmin(rest @ cost))
    scaled[:, target] += rest
    return scaled, float(np.max(rest))


def errors_met(
    matrix: Float[np.ndarray, "n m"], errors: Float[np.ndarray, "g n"], cost: Float[np.ndarray, "n m"]
) -> Float[np.ndarray, "n m"]:
    """A channel with Σ_x errors[g, x] K[x, z] >= 0 for every guess and output, and levels no higher than K's.

    First outputs that break a requirement badly are merged with the one where that costs least (post-processing;
    a merged output errs at least as much as the weighted mean of its parts). Then the least share t of a constant
    output is mixed in: t = max −e/(o_z B_g − e) over violated e = (B K)[g, z], B_g = Σ_x errors[g, x] > 0, o the
    channel's own marginal. If some B_g is zero (E_m equals the prior error), only constant channels qualify.
    """
    matrix = np.array(matrix, dtype=np.float64)
    blind = np.sum(errors, axis=1)
    scale = float(np.max(np.abs(errors)))
    if float(np.min(blind)) <= 1e-9 * scale:
        return _constant(matrix.shape, cost)
    for _ in range(matrix.shape[1]):
        needed = _error_share(matrix, errors, blind)
        worst = int(np.argmax(needed))
        if needed[worst] <= 1e-3:
            break
        others = matrix + matrix[:, [worst]]
        prices = np.min(cost.T @ others, axis=0) - np.min(cost.T @ matrix, axis=0)
        prices[(np.arange(len(prices)) == worst) | (np.max(matrix, axis=0) <= 0.0)] = np.inf
        if not np.any(np.isfinite(prices)):
            break
        matrix[:, int(np.argmin(prices))] += matrix[:, worst]
        matrix[:, worst] = 0.0
    share = float(np.max(_error_share(matrix, errors, blind)))
    if share <= 0.0:
        return matrix
    marginal = np.mean(matrix, axis=0)
    return mix(matrix, marginal / np.sum(marginal), min(1.0, share * (1.0 + 1e-9) + 1e-14))


def remapped(matrix: Float[np.ndarray, "n k"], cost: Float[np.ndarray, "n m"]) -> Float[np.ndarray, "n m"]:
    """Each of k outputs renamed to the one of m that costs least for its column (optimal remapping).

    Post-processing: no level rises, and no loss does.
    """
    best = np.argmin(cost.T @ matrix, axis=0)
    result = np.zeros(cost.shape)
    np.add.at(result.T, best, matrix.T)
    return result


def without_small_outputs(
    matrix: Float[np.ndarray, "n m"], cost: Float[np.ndarray, "n m"], mass: float
) -> Float[np.ndarray, "n m"]:
    """Outputs that no input publishes with more than `mass` are merged into the kept output where they cost least."""
    largest = np.max(matrix, axis=0)
    kept = largest > mass
    small = ~kept & (largest > 0.0)
    if not np.any(small):
        return matrix
    targets = np.flatnonzero(kept)
    result = np.where(kept, matrix, 0.0)
    choice = targets[np.argmin(cost[:, targets].T @ matrix[:, small], axis=0)]
    np.add.at(result.T, choice, matrix[:, small].T)
    return result


def _constant_share(rest: np.ndarray, allowed: np.ndarray) -> float:
    shrink = np.exp(-allowed)
    np.fill_diagonal(shrink, 0.0)
    worst = float(np.max((shrink * rest[:, None] - rest[None, :]) / (1.0 - shrink)))
    ratio = max(0.0, worst)
    return min(1.0, ratio / (1.0 + ratio) * (1.0 + 1e-9) + (1e-15 if ratio > 0.0 else 0.0))


def _error_share(matrix: np.ndarray, errors: np.ndarray, blind: np.ndarray) -> np.ndarray:
    deficit = -(errors @ matrix)
    marginal = np.mean(matrix, axis=0) / np.mean(np.sum(matrix, axis=1))
    room = blind[:, None] * marginal[None, :]
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(deficit > 0.0, deficit / (deficit + room), 0.0)
    return np.max(share, axis=0)


def _constant(shape: tuple[int, ...], cost: np.ndarray) -> np.ndarray:
    result = np.zeros(shape)
    result[:, int(np.argmin(np.sum(cost, axis=0)))] = 1.0
    return result
