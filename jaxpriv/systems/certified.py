"""Leakage of a system's outputs with every rounding accounted for: numbers that may be published.

Solutions of the Lyapunov and Riccati equations are guesses here. A guess that satisfies the equation as an inequality
bounds the solution from one side, by monotonicity, and the inequalities need only products
(proofs in docs/linear_systems.md), so that float64 with an error radius and a verified semidefiniteness test suffice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jaxpriv.certificates.arithmetic import up
from jaxpriv.certificates.scalars import chi_square_quantile
from jaxpriv.errors import CertificateError, InfeasibleError, InputError
from jaxpriv.linalg.lyapunov import discrete_lyapunov
from jaxpriv.linalg.riccati import discrete_riccati
from jaxpriv.precision import double_precision, host_array
from jaxpriv.priors.state_space import LinearSystem, checked_covariance, require_stable
from jaxpriv.systems.enclosure import Enclosure
from jaxpriv.systems.leakage import Observer


_RAISES = 8  # times that a guess is moved 16 times farther to the safe side before it is given up


@dataclass(frozen=True)
class SystemLeakage:
    """What noisy outputs of a stationary linear system leak, in nats, every number rounded up.

    Attributes:
        delta: of every ε, averaged over the prior.
        information: by observer, mutual information with a single state x_k: "output" hears y_k alone, "filter" all
            outputs up to k, "smoother" later ones too.
        ranks: by observer, the degrees of freedom used.
        epsilon: by observer, ε with P(leakage about x_k > ε) ≤ δ.
        steps: T, the length of the trajectory, or None.
        trajectory_information, trajectory_epsilon: of T outputs about all T states together.
        rate: mutual information that each further output adds in the steady state. The last four: with `steps` only.
    """

    delta: float
    information: dict[str, float]
    ranks: dict[str, int]
    epsilon: dict[str, float]
    steps: int | None = None
    trajectory_information: float | None = None
    trajectory_epsilon: float | None = None
    rate: float | None = None

    def __str__(self) -> str:
        lines = [f"leakage in nats, exceeded with probability at most {self.delta:g} (averaged over the prior)"]
        words = {"output": "about a state, from its own output alone", "filter": "from all outputs so far",
                 "smoother": "from all outputs, later ones included"}  # fmt: skip
        lines += [f"  {words[name]}: {value:.6g}" for name, value in self.epsilon.items()]
        if self.trajectory_epsilon is not None:
            lines.append(f"  about all {self.steps} states together: {self.trajectory_epsilon:.6g}")
        return "\n".join(lines)


def certify_system(
    system: LinearSystem,
    noise: np.ndarray,
    delta: float,
    *,
    rank: int | None = None,
    steps: int | None = None,
    observers: Sequence[Observer] = ("output", "filter", "smoother"),
) -> SystemLeakage:
    """The leakage about a state to the three observers, and about `steps` states together, rounded up.

    Args:
        system: A stable, C of full row rank not required. Σ must be positive definite ((A, Q^½) controllable).
        noise: Θ, (m, m), positive definite.
        delta: between 0 and 1.
        rank: r of the filter's and the smoother's cross-covariance, known from the structure; n by default (always
            safe). The output's is min(m, n).
        steps: T, to bound the trajectory as well.
        observers: which of the three to bound.

    Raises:
        InputError: an argument is wrong: an unstable A (with its spectral radius), noise that is no covariance.
        InfeasibleError: noise that is not positive definite: an output without noise leaks without bound.
        CertificateError: a bound could not be verified in double precision.
    """
    A, Q, C = (host_array(one, name, 2) for one, name in ((system.A, "A"), (system.Q, "Q"), (system.C, "C")))
    require_stable(A)
    noise = checked_covariance(host_array(noise, "noise", 2), "noise")
    if noise.shape != (len(C), len(C)):
        raise InputError(f"noise has shape {noise.shape}; expected {(len(C), len(C))}, one row an output.")
    if rank is not None and not 1 <= rank <= len(A):
        raise InputError(f"rank is {rank}; expected a number from 1 to {len(A)}.")
    if steps is not None and steps < 1:
        raise InputError(f"steps is {steps}; expected the number of outputs, at least 1.")
    with double_precision():
        bounds = _Bounds(A, checked_covariance(Q, "Q"), C, noise)
        found = {"output": bounds.output, "filter": bounds.filter, "smoother": bounds.smoother}
        information = {name: found[name]() for name in observers}
        ranks = {name: min(C.shape) if name == "output" else rank or len(A) for name in observers}
        epsilon = {name: _epsilon(information[name], ranks[name], delta) for name in information}
        if steps is None:
            return SystemLeakage(delta, information, ranks, epsilon)
        total = bounds.trajectory(steps)
        whole = _epsilon(total, steps * min(C.shape), delta)
    return SystemLeakage(delta, information, ranks, epsilon, steps, total, whole, bounds.rate())


def _epsilon(information: float, rank: int, delta: float) -> float:
    return up(information + 0.5 * chi_square_quantile(rank, delta))


class _Bounds:
    """Matrices proven to lie on the safe side of the solutions, and the informations that follow from them."""

    def __init__(self, A: np.ndarray, Q: np.ndarray, C: np.ndarray, noise: np.ndarray):
        self.A, self.Q, self.C, self.noise = (Enclosure(one) for one in (A, Q, C, noise))
        self.noise_logdet = self.noise.logdet()[0]
        if not math.isfinite(self.noise_logdet):
            raise InfeasibleError("noise is not positive definite: an output without noise leaks without bound.")
        self.identity = np.eye(len(A))
        self._prove_stable()
        self.precision = C.T @ np.linalg.solve(noise, C)
        self.stationary = self._stationary()

    @cached_property
    def prior_logdet(self) -> float:
        upper = self.stationary.logdet()[1]
        if not math.isfinite(upper):
            raise CertificateError(
                "the stationary covariance of the state could not be proven positive definite: some state never moves. "
                "Remove the states that the disturbance does not reach."
            )
        return upper

    @cached_property
    def predicted(self) -> np.ndarray:
        return np.asarray(discrete_riccati(self.A.centre, self.precision, self.Q.centre))

    @cached_property
    def gain(self) -> np.ndarray:
        C, noise = self.C.centre, self.noise.centre
        return np.linalg.solve(C @ self.predicted @ C.T + noise, C @ self.predicted).T

    @cached_property
    def loop(self) -> np.ndarray:
        return self.A.centre @ (self.identity - self.gain @ self.C.centre)

    def _prove_stable(self) -> None:
        """A positive definite L with L − A L Aᵀ positive definite proves that A is stable."""
        guess = _symmetric(np.asarray(discrete_lyapunov(self.A.centre, self.identity)))
        growth = Enclosure(guess)
        left = growth - growth.sandwiched(self.A) - Enclosure(0.5 * self.identity)
        if not (growth.is_semidefinite() and left.is_semidefinite()):
            raise CertificateError("A could not be proven stable in double precision: it is too close to unstable.")
        self.growth = guess

    def _stationary(self) -> Enclosure:
        """Σ̄ ⪰ Σ, from Σ̄ − A Σ̄ Aᵀ − Q ⪰ 0."""
        guess = np.asarray(discrete_lyapunov(self.A.centre, self.Q.centre))

        def safe(one: Enclosure) -> bool:
            return (one - one.sandwiched(self.A) - self.Q).is_semidefinite()

        return _moved(guess, self.growth, safe, "the stationary covariance")

    @cached_property
    def below(self) -> Enclosure:
        """0 ⪯ P̲ ⪯ P⁻, from P̲ ⪯ A (P̲ − P̲Cᵀ(CP̲Cᵀ + Θ)⁻¹CP̲) Aᵀ + Q."""
        spread = np.asarray(discrete_lyapunov(self.loop, self.identity))

        def safe(one: Enclosure) -> bool:
            removed = (one.sandwiched(self.C) + self.noise).inverse_between(self.C @ one @ self.A.T)
            change = one.sandwiched(self.A) + self.Q - one
            return one.is_semidefinite() and (change - removed).is_semidefinite()

        return _moved(self.predicted, -spread, safe, "the predicted covariance")

    def _above(self) -> Enclosure:
        """P̄ ⪰ P⁻, from the Lyapunov inequality of a filter with any gain."""
        loop = self._loop(self.gain)
        injected = self.noise.sandwiched(self.A @ Enclosure(self.gain)) + self.Q
        spread = np.asarray(discrete_lyapunov(self.loop, self.identity))

        def safe(one: Enclosure) -> bool:
            return (one - one.sandwiched(loop) - injected).is_semidefinite()

        return _moved(self.predicted, spread, safe, "the predicted covariance")

    def _ahead(self) -> Enclosure:
        """L with L Lᵀ ⪰ N, the information about a state in its own and all later outputs.

        For any Y: (N⁻¹ + Q)⁻¹ ⪯ (I − QY)ᵀ N (I − QY) + Yᵀ Q Y, so that N may be replaced by what solves the Lyapunov
        inequality with a fixed Y.
        """
        A, Q = self.A.centre, self.Q.centre
        guess = np.asarray(discrete_riccati(A.T, Q, self.precision))
        fixed = Enclosure(np.linalg.solve(self.identity + guess @ Q, guess))
        kept = (Enclosure(self.identity) - self.Q @ fixed) @ self.A
        own = self.Q.sandwiched((fixed @ self.A).T) + self.noise.inverse_between(self.C)
        spread = np.asarray(discrete_lyapunov(kept.centre.T, self.identity))
        factors: list[np.ndarray] = []

        def safe(one: Enclosure) -> bool:
            try:
                factors.append(np.linalg.cholesky(one.centre))
            except np.linalg.LinAlgError:
                return False
            square = (Enclosure(factors[-1]) @ Enclosure(factors[-1]).T).symmetric()
            return (square - square.sandwiched(kept.T) - own).is_semidefinite()

        _moved(guess, spread, safe, "the information in later outputs")
        return Enclosure(factors[-1])

    def _loop(self, gain: np.ndarray) -> Enclosure:
        return self.A @ (Enclosure(self.identity) - Enclosure(gain) @ self.C)

    def _gained(self, covariance: Enclosure) -> float:
        """½ log det(I + Θ⁻¹ C P Cᵀ), rounded up."""
        seen = (covariance.sandwiched(self.C) + self.noise).logdet()[1]
        return self._half(seen - self.noise_logdet)

    def _half(self, value: float) -> float:
        """Half of a sum of a few bounds, rounded up; 0 at least."""
        if not math.isfinite(value):
            raise CertificateError(
                "a determinant could not be verified: the noise is too small beside the prior, or nearly singular."
            )
        return max(0.0, 0.5 * value + 8.0 * 2.0**-53 * (abs(value) + abs(self.noise_logdet)))

    def output(self) -> float:
        return self._gained(self.stationary)

    def filter(self) -> float:
        # log det P = log det P⁻ − log det(I + Θ⁻¹ C P⁻ Cᵀ) increases with P⁻.
        seen = (self.below.sandwiched(self.C) + self.noise).logdet()[1]
        return self._half(_sum_up(self.prior_logdet, -self.below.logdet()[0], seen, -self.noise_logdet))

    def smoother(self) -> float:
        factor = self._ahead()
        inside = Enclosure(self.identity) + self.below.sandwiched(factor.T)
        return self._half(_sum_up(self.prior_logdet, -self.below.logdet()[0], inside.logdet()[1]))

    def rate(self) -> float:
        return self._gained(self._above())

    def trajectory(self, steps: int) -> float:
        total, covariance = 0.0, self.stationary
        for _ in range(steps):
            total = up(total + self._gained(covariance))
            C, noise = self.C.centre, self.noise.centre
            gain = np.linalg.solve(C @ covariance.centre @ C.T + noise, C @ covariance.centre).T
            moved = covariance.sandwiched(self._loop(gain)) + self.noise.sandwiched(self.A @ Enclosure(gain)) + self.Q
            moved = moved.symmetric()
            # An upper bound without a radius, so that radii do not add up over the steps.
            raised = moved.centre + 2.0 * moved.radius * self.identity
            covariance = Enclosure(raised)
        return total


def _sum_up(*values: float) -> float:
    total = math.fsum(values)
    return up(total)


def _symmetric(matrix: np.ndarray) -> np.ndarray:
    return 0.5 * (matrix + matrix.T)


def _moved(guess: np.ndarray, direction: np.ndarray, safe: Callable[[Enclosure], bool], what: str) -> Enclosure:
    """The guess, moved along a direction until it is proven to be on the safe side."""
    direction = _symmetric(direction)
    size = len(guess) * np.linalg.norm(guess) / max(1.0, float(np.linalg.norm(direction)))
    for tries in range(_RAISES):
        moved = _symmetric(guess + 2.0**-50 * 16.0**tries * size * direction)
        if np.all(np.isfinite(moved)) and safe(Enclosure(moved)):
            return Enclosure(moved)
    raise CertificateError(
        f"{what} could not be verified in double precision: the system is too close to unstable, the noise too small "
        "beside the prior, or some state is not moved by the disturbance."
    )
