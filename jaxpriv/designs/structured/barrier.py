"""The least noise of a pattern by Newton's method on a logarithmic barrier: feasible at every step, to many digits.

The unknowns are the pattern's parameters x (the noise is ηI + K(x)), for secrets of several times under the product
bound their d, and for a budget the common scale τ of the targets. All requirements are convex: M(K) ⪯ D for each
secret and prior, K ⪰ 0, and linear inequalities. One inverse a prior and n² k operations a floor make a step. Derived
here; proof in docs/design.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve

from jaxpriv.designs.structured.pattern import Pattern
from jaxpriv.designs.structured.requirements import Gain, GainLimit, gain_of


_FALL = 0.1  # of the barrier's weight from one centre to the next
_NEAR, _CENTRE = 1e-2, 1e-8  # squared Newton decrement that counts as centred on the way, and at the end
_QUADRATIC = 0.04
_HALVINGS = 40


@dataclass(frozen=True)
class StructuredNoise:
    """Noise K above the floor, its cost or the common scale of the targets, and what bounds any other noise.

    Attributes:
        excess: K, (n, n), positive definite and of the pattern.
        value: the least cost of K, or the scale τ.
        gap: what the barrier leaves between value and optimum, relative.
        columns: for each limit Z (n, k), Y = Z Zᵀ the dual variable up to a common factor.
        steps: Newton steps taken.
    """

    excess: np.ndarray
    value: float
    gap: float
    columns: list[np.ndarray]
    steps: int


@dataclass(frozen=True)
class Interior:
    """The problem in one vector z = (x, d, τ): least objective·z with M_j ⪯ D_j(z), K(x) ⪰ 0, rows·z + constants ≥ 0.

    Attributes:
        diagonals: D_j as pairs (coefficients (k, v), variables (v,)) and a constant (k,).
    """

    pattern: Pattern
    covariances: list[np.ndarray]
    floor_variance: float
    limits: list[GainLimit]
    objective: np.ndarray
    diagonals: list[tuple[np.ndarray, np.ndarray, np.ndarray]]
    rows: np.ndarray
    constants: np.ndarray

    @property
    def degree(self) -> int:
        """The barrier's parameter: gap = weight × degree at a centre."""
        return self.pattern.size + self.constants.size + sum(limit.times.size for limit in self.limits)

    @classmethod
    def of(
        cls,
        pattern: Pattern,
        covariances: list[np.ndarray],
        limits: list[GainLimit],
        cost: np.ndarray,
        floor_variance: float,
        budget: float | None,
    ) -> Interior:
        """`cost` (m,): of a unit of each parameter; `budget` is for K alone. None minimises the cost at the targets."""
        total = pattern.count + sum(limit.count for limit in limits if limit.count > 1) + (budget is not None)
        scale = total - 1 if budget is not None else None
        objective = np.zeros(total)
        if scale is None:
            objective[: pattern.count] = cost
        else:
            objective[scale] = 1.0
        rows, constants, diagonals, place = [], [], [], pattern.count
        if budget is not None:
            row = np.zeros(total)
            row[: pattern.count] = -cost
            rows.append(row)
            constants.append(budget)
        for limit in limits:
            free = limit.scales and scale is not None
            k = limit.times.size
            if limit.count == 1:
                variables = np.array([scale] if free else [], dtype=int)
                coefficients = np.full((k, variables.size), limit.target)
                diagonals.append((coefficients, variables, np.full(k, 0.0 if free else limit.target)))
                continue
            variables = place + np.arange(limit.count)
            place += limit.count
            coefficients = (limit.times[:, None] == np.arange(limit.count)).astype(float)
            diagonals.append((coefficients, variables, np.zeros(k)))
            row = np.zeros(total)
            row[variables] = -1.0
            if free:
                row[scale] = limit.count * limit.target
            rows.append(row)
            constants.append(0.0 if free else limit.count * limit.target)
        table = np.array(rows).reshape(len(rows), total)
        return cls(
            pattern, covariances, floor_variance, limits, objective, diagonals, table, np.array(constants, float)
        )

    def state(self, z: np.ndarray) -> _State | None:
        """Everything the barrier needs at z; None outside the interior."""
        slack = self.rows @ z + self.constants
        if not np.all(slack > 0.0) or not np.all(np.isfinite(z)):
            return None
        excess = self.pattern.matrix(z[: self.pattern.count])
        try:
            lower = np.linalg.cholesky(excess)
            barrier = -2.0 * np.sum(np.log(np.diagonal(lower))) - np.sum(np.log(slack))
            inverses = [_inverse(covariance + excess) for covariance in self.covariances]
            bare = None
            gains, roots = [], []
            for limit, (coefficients, variables, constant) in zip(self.limits, self.diagonals, strict=True):
                if limit.prior < 0 and bare is None:
                    bare = _inverse(excess + self.floor_variance * np.eye(self.pattern.size))
                gain = gain_of(limit, bare if limit.prior < 0 else inverses[limit.prior])  # pyright: ignore
                room = np.linalg.cholesky(np.diag(coefficients @ z[variables] + constant) - gain.value)
                barrier -= 2.0 * np.sum(np.log(np.diagonal(room)))
                gains.append(gain)
                roots.append(np.linalg.inv(room).T)  # X = R Rᵀ is the inverse of D − M
        except np.linalg.LinAlgError:
            return None
        if not np.isfinite(barrier):
            return None
        return _State(z, float(barrier), slack, lower, inverses, bare, gains, roots)

    def newton(self, state: _State, weight: float) -> tuple[np.ndarray, float]:
        """Newton direction of objective/weight + barrier, and the squared decrement."""
        pattern, count = self.pattern, self.pattern.count
        gradient = self.objective / weight - self.rows.T @ (1.0 / state.slack)
        hessian = (self.rows.T / state.slack**2) @ self.rows
        inverse = _inverse_from(state.lower)
        gradient[:count] -= pattern.traces(inverse)
        inner = hessian[:count, :count]
        inner += pattern.products(inverse, inverse)
        pushes = [np.zeros_like(inverse) for _ in range(len(self.covariances) + 1)]
        for limit, gain, root, (coefficients, variables, _) in zip(
            self.limits, state.gains, state.roots, self.diagonals, strict=True
        ):
            wide = gain.response @ root
            push = wide @ wide.T
            pushes[limit.prior] += push  # the last entry is that of prior −1
            inner += pattern.products(push, push + 2.0 * gain.extra @ gain.extra.T)
            square = root @ root.T
            gradient[variables] -= coefficients.T @ np.diagonal(square)
            hessian[np.ix_(variables, variables)] += coefficients.T @ square**2 @ coefficients
            for column, variable in zip(coefficients.T, variables, strict=True):
                mixed = (gain.response @ square) * column @ (gain.response @ square).T
                across = pattern.traces(mixed)
                hessian[:count, variable] += across
                hessian[variable, :count] += across
        for resolvent, push in zip([*state.inverses, state.bare], pushes, strict=True):
            if resolvent is not None and push.any():
                gradient[:count] -= pattern.traces(push)
                inner += pattern.products(push, 2.0 * resolvent)
        # Scaled to a unit diagonal, the factorisation does not depend on the units of the unknowns.
        size = 1.0 / np.sqrt(np.diagonal(hessian))
        lower = np.linalg.cholesky(hessian * size[:, None] * size + 1e-15 * np.eye(size.size))
        step = -size * cho_solve((lower, True), size * gradient)
        return step, float(-gradient @ step)

    def duals(self, state: _State, direction: np.ndarray) -> list[np.ndarray]:
        """Dual columns at a centre, moved along the Newton direction as the linear system has them.

        D − M is small where a limit is active, so its inverse at the centre carries many rounding errors; what the
        linear system says of the inverse at the next point satisfies the dual's equations to the residual of the solve.
        """
        moved = self.pattern.matrix(direction[: self.pattern.count])
        columns = []
        for limit, gain, root, (coefficients, variables, _) in zip(
            self.limits, state.gains, state.roots, self.diagonals, strict=True
        ):
            change = moved @ gain.response
            widening = np.diag(coefficients @ direction[variables]) + gain.response.T @ change
            turned = root - 0.5 * root @ (root.T @ widening @ root)
            resolvent = state.bare if limit.prior < 0 else state.inverses[limit.prior]
            response = gain.response - resolvent @ change - gain.extra @ (gain.extra.T @ change)
            columns.append(response @ turned)
        return columns


@dataclass(frozen=True)
class _State:
    z: np.ndarray
    barrier: float
    slack: np.ndarray
    lower: np.ndarray
    inverses: list[np.ndarray]
    bare: np.ndarray | None
    gains: list[Gain]
    roots: list[np.ndarray]


def _inverse(matrix: np.ndarray) -> np.ndarray:
    return _inverse_from(np.linalg.cholesky((matrix + matrix.T) / 2))


def _inverse_from(lower: np.ndarray) -> np.ndarray:
    """(L Lᵀ)⁻¹."""
    inverse = np.linalg.inv(lower)
    return inverse.T @ inverse


def minimise_barrier(interior: Interior, start: np.ndarray, tolerance: float, max_steps: int) -> StructuredNoise:
    """From an interior point to a relative gap of `tolerance`, or as far as `max_steps` and rounding allow."""
    state = interior.state(start)
    if state is None:
        raise AssertionError("the start is not in the interior.")
    weight = float(interior.objective @ start) / interior.degree
    best, steps, before = None, 0, np.inf
    while steps < max_steps:
        final = weight * interior.degree <= tolerance * abs(float(interior.objective @ state.z))
        try:
            direction, decrement = interior.newton(state, weight)
        except np.linalg.LinAlgError:
            break
        steps += 1
        moved = _line_search(interior, state, weight, direction, decrement)
        stuck = moved is None or (decrement < _QUADRATIC and decrement > 0.5 * before)
        if moved is not None:
            state = moved
        before = decrement
        if decrement < (_CENTRE if final else _NEAR) or stuck:
            if decrement > _QUADRATIC:  # rounding ends the path: the last centre stands
                break
            best, before = (state, weight), np.inf
            if final:
                break
            weight *= _FALL
    state, weight = (state, weight) if best is None else best
    value = float(interior.objective @ state.z)
    columns = interior.duals(state, interior.newton(state, weight)[0])
    excess = interior.pattern.matrix(state.z[: interior.pattern.count])
    return StructuredNoise(excess, value, weight * interior.degree / max(abs(value), 1e-300), columns, steps)


def _line_search(
    interior: Interior, state: _State, weight: float, direction: np.ndarray, decrement: float
) -> _State | None:
    """The first of 1, ½, ¼ … of the step that stays inside and lowers the function; None if none does."""
    if decrement < _QUADRATIC:
        # Newton's method converges quadratically from here, and differences of logarithms are mostly rounding.
        return interior.state(state.z + direction)
    slope = interior.objective @ direction / weight
    length = 1.0
    for _ in range(_HALVINGS):
        moved = interior.state(state.z + length * direction)
        if moved is not None:
            change = length * slope + (moved.barrier - state.barrier)
            if change <= -0.05 * length * decrement:
                return moved
        length *= 0.5
    return None
