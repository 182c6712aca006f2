"""What the batch verbs return: arrays over the traces, and each trace's own `Design` on demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jaxpriv.certificates.verb import Certificate, host_arrays
from jaxpriv.designs.result import Design, DesignResult
from jaxpriv.errors import InputError
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.precision import double_precision


@dataclass(frozen=True, eq=False)
class BatchDesign:
    """Designs of many traces. Entry i of every field is one trace; `positions[i]` is where it stood in the input.

    `results[i]` says how the design ended. It is None for a trace that was refused: `refusals` then holds the reason by
    position, the factor is None and the numbers are NaN; nothing else in the batch is touched by it.

    Attributes:
        positions: (m,) integers.
        sizes: (m,) numbers of coordinates; 0 where refused.
        factors: m arrays L (n, q), in the unit of the trace; the noise has covariance L Lᵀ + floor_sd² I.
        floor_sd: (m,), in the unit of the trace.
        epsilon: (m,) certified levels in nats, never below the true ones, infinite where nothing could be verified.
        cost: (m,) verified tr G, in squared units of the trace.
        lower_bound: (m,) of what was minimised: the cost for a target, ε for a budget.
        gap: (m,) relative distance of that from what was reached.
        results: m values of `DesignResult`, or None.
        losses, losses_lower: m arrays (secrets, priors) of verified bounds of the losses.
        order: Rényi order of the levels.
        refusals: reasons, by position.
        stats: counts of the run: compilations, buckets, how many certificates were taken one by one.
    """

    positions: np.ndarray
    sizes: np.ndarray
    factors: tuple[np.ndarray | None, ...]
    floor_sd: np.ndarray
    epsilon: np.ndarray
    cost: np.ndarray
    lower_bound: np.ndarray
    gap: np.ndarray
    results: tuple[DesignResult | None, ...]
    losses: tuple[np.ndarray | None, ...]
    losses_lower: tuple[np.ndarray | None, ...]
    order: float
    resolution: float
    refusals: Mapping[int, str] = field(default_factory=dict)
    stats: Mapping[str, Any] = field(default_factory=dict)
    _problems: tuple[Any, ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[Design]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, i: int) -> Design:
        """The usual `Design` of entry i, its certificate included. Raises InputError where the trace was refused."""
        i = range(len(self))[i]
        result, factor, losses, below = self.results[i], self.factors[i], self.losses[i], self.losses_lower[i]
        if result is None or factor is None or losses is None or below is None:
            reason = self.refusals.get(int(self.positions[i]), "no reason is known")
            raise InputError(f"trace {int(self.positions[i])} of the batch was refused: {reason}")
        problem = self._problems[i]
        secrets = problem.secret if isinstance(problem.secret, (list, tuple)) else [problem.secret]
        with double_precision():
            covariances = tuple(host_arrays(prior, [])[0] for prior in problem.priors)
        spreads = tuple((int(secret.n_times), float(np.asarray(secret.radius))) for secret in secrets)
        scale = 0.5 * self.order * np.array([times * radius**2 for times, radius in spreads])[:, None]
        certificate = Certificate(
            float(self.epsilon[i]),
            losses * scale * (1 + 2.0**-50),
            below * scale * (1 - 2.0**-50),
            losses,
            below,
            float(self.cost[i]),
            self.order,
            _spreads=spreads,
            _covariances=covariances,
        )
        mechanism = GaussianMechanism(factor, float(self.floor_sd[i]), self.resolution)
        stats = {"method": "batch", "reason": "designed with others", "floor_sd": float(self.floor_sd[i])}
        return Design(
            mechanism,
            float(self.epsilon[i]),
            float(self.cost[i]),
            float(self.lower_bound[i]),
            float(self.gap[i]),
            result,
            stats,
            certificate,
        )

    @property
    def designed(self) -> np.ndarray:
        """(m,) whether there is a design."""
        return np.array([one is not None for one in self.results], bool)

    def __str__(self) -> str:
        counts = {one: sum(other is one for other in self.results) for one in DesignResult}
        lines = [f"{len(self)} traces, {int(np.sum(self.designed))} designed, {len(self.refusals)} refused"]
        lines += [f"  {count} {one.name}" for one, count in counts.items() if count]
        lines += [f"  trace {position}: {reason}" for position, reason in list(self.refusals.items())[:10]]
        return "\n".join(lines)


def joined(parts: list[BatchDesign]) -> BatchDesign:
    """Several batches as one, in the order of their positions in the input. `parts` is not empty."""
    positions = np.concatenate([part.positions for part in parts])
    order = np.argsort(positions, kind="stable")

    def array(name: str) -> np.ndarray:
        return np.concatenate([getattr(part, name) for part in parts])[order]

    def listed(name: str) -> tuple[Any, ...]:
        together = [one for part in parts for one in getattr(part, name)]
        return tuple(together[k] for k in order)

    stats: dict[str, Any] = {}
    for part in parts:
        for name, value in part.stats.items():
            stats[name] = stats.get(name, 0) + value
    return BatchDesign(
        positions[order],
        array("sizes"),
        listed("factors"),
        array("floor_sd"),
        array("epsilon"),
        array("cost"),
        array("lower_bound"),
        array("gap"),
        listed("results"),
        listed("losses"),
        listed("losses_lower"),
        parts[0].order,
        parts[0].resolution,
        dict(sorted((position, reason) for part in parts for position, reason in part.refusals.items())),
        stats,
        listed("_problems"),
    )
