"""What is true of a channel: its privacy levels, what adversaries infer, what it costs, with every condition named."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool, Float

from jaxpriv.channels.channel import Channel
from jaxpriv.channels.exact_levels import ExactRows, Level, exact_geo_level, exact_set_level
from jaxpriv.channels.geometry import pairwise_distances
from jaxpriv.channels.inference import (
    Guesses,
    conditional_error,
    expected_error,
    output_losses,
    prior_error,
    quality_loss,
)
from jaxpriv.channels.level_bounds import map_bound, union_bound
from jaxpriv.channels.obfuscation import Obfuscation, checked_prior, design_guesses
from jaxpriv.channels.prior import DiscretePrior
from jaxpriv.channels.set_audit import SetAudit, audit_set
from jaxpriv.channels.table import IntegerTable
from jaxpriv.errors import InputError
from jaxpriv.precision import double_precision, host_array


_TABLE = "the exact integer table"
_MATRIX = "the float64 matrix, rows divided by their exact sums"


@dataclass(frozen=True)
class ChannelAudit:
    """An audit; errors and losses in the unit of the locations, levels in nats.

    `map_level` is the ε of differential privacy between all places, `geo_level` the ε per unit of distance;
    `map_bound` the closed form of the method, where it has one. `certified_error` is the largest error that the sets
    certify for every output against an adversary who need not know the set: the least `promised_error` of a partition,
    None without one. `arithmetic` says what the levels are of.
    """

    method: str
    arithmetic: str
    adversary: str
    guess_set: str
    prior: str
    sets: tuple[SetAudit, ...] = field(repr=False)
    disjoint: bool
    map_level: Level
    map_bound: float | None
    geo_level: Level
    quality_loss: float
    expected_error: float
    prior_error: float
    least_conditional_error: float
    worst_output: int
    unpublished_outputs: int
    certified_error: float | None
    min_error: float | None

    @property
    def real_level(self) -> float:
        """The largest real level inside the protection sets; the level of the whole map where there are none."""
        return max((audit.level.value for audit in self.sets), default=self.map_level.value)

    @property
    def least_narrowed_error(self) -> float:
        """The least narrowed error over all sets and outputs; the least conditional error where there are none."""
        return min((audit.least_narrowed_error for audit in self.sets), default=self.least_conditional_error)

    def sentences(self) -> list[str]:
        """The audit in words, the failures first."""
        lines = []
        failed = [audit for audit in self.sets if not audit.holds]
        if failed:
            worst = max(failed, key=lambda audit: audit.level.value - (audit.nominal or 0.0))
            lines.append(
                f"The claimed level fails on {len(failed)} of {len(self.sets)} protection sets: {worst.nominal:.6g} is "
                f"claimed and {worst.level.value:.6g} is real on {_listed(worst.members)}, at output "
                f"{worst.level.output}."
            )
        if self.min_error is not None and self.least_narrowed_error < self.min_error:
            lines.append(
                f"The claimed least error fails: {self.min_error:.6g} is claimed and an adversary who knows the "
                f"protection set is left {self.least_narrowed_error:.6g}."
            )
        if self.min_error is not None and self.least_conditional_error < self.min_error:
            lines.append(
                f"Without that knowledge the least conditional error is {self.least_conditional_error:.6g}, below "
                f"{self.min_error:.6g} (output {self.worst_output})."
            )
        lines.append(f"Adversary: {self.adversary}; {self.guess_set}; {self.prior}.")
        lines.append(f"Levels of {self.arithmetic}, upper bounds of the exact ones.")
        if self.sets:
            kind = "disjoint" if self.disjoint else "overlapping"
            lines.append(f"Inside each of {len(self.sets)} {kind} sets: {self.real_level:.6g} nats at most.")
        bound = "" if self.map_bound is None else f" (closed-form bound {self.map_bound:.6g})"
        lines.append(f"On the whole map: {self.map_level.value:.6g} nats{bound}.")
        lines.append(f"Per unit of distance: {self.geo_level.value:.6g} nats.")
        lines.append(f"Mean quality loss {self.quality_loss:.6g}; mean inference error {self.expected_error:.6g}.")
        lines.append(f"Least conditional error {self.least_conditional_error:.6g}, at output {self.worst_output}.")
        if self.unpublished_outputs:
            lines.append(f"{self.unpublished_outputs} outputs have probability zero and count for no error.")
        return lines


def audit_channel(
    channel: Channel | IntegerTable,
    prior: DiscretePrior,
    sets: Bool[np.ndarray, "K n"] | None = None,
    epsilons: Float[np.ndarray, " K"] | None = None,
    min_error: float | None = None,
    outputs: Float[np.ndarray, "m 2"] | None = None,
    loss: Float[np.ndarray, "n m"] | None = None,
    guesses: Guesses = None,
    adversary_prior: Float[np.ndarray, " n"] | None = None,
    method: str = "channel",
    bound: float | None = None,
) -> ChannelAudit:
    """Audit a channel on a map, on the host in float64 with exact comparisons of the worst entries.

    Args:
        channel: the channel, or the `IntegerTable` that is really drawn from: audit what is released.
        prior: the map and the user's prior, for the quality loss.
        sets: protection sets (K, n) to report on; every pair inside a set counts.
        epsilons: nominal levels (K,) to compare with.
        min_error: the claimed least error, to compare with.
        outputs: published places, where they are not the prior's.
        loss: losses, where they are not distances.
        guesses: where the adversary may guess (see `inference`).
        adversary_prior: the adversary's belief (n,), where it is not the prior. No positive error survives an
            adversary who is already sure.
        method: its name, for the report.
        bound: closed-form level of the whole map, for the report.

    Raises:
        InputError: shapes that do not fit, an empty set, a probability below the range of float64.
    """
    host = checked_prior(prior)
    rows = ExactRows.of(channel)
    floating = channel.channel if isinstance(channel, IntegerTable) else channel
    belief = None if adversary_prior is None else host_array(adversary_prior, "adversary_prior", 1)
    groups = np.zeros((0, host.size), dtype=bool) if sets is None else np.asarray(sets, dtype=bool)
    if groups.ndim != 2 or groups.shape[1] != host.size:
        raise InputError(f"sets have shape {groups.shape}; expected (K, {host.size}).")
    if np.any(~np.any(groups, axis=1)):
        raise InputError(f"set {int(np.argmin(np.any(groups, axis=1)))} is empty.")
    nominal = None if epsilons is None else host_array(epsilons, "epsilons", 1)
    if nominal is not None and len(nominal) != len(groups):
        raise InputError(f"{len(nominal)} levels for {len(groups)} sets.")
    with double_precision():
        exact = Channel(np.asarray(floating.log_matrix, dtype=np.float64))
        output_losses(exact, host, outputs, loss)
        errors = np.asarray(conditional_error(exact, host, guesses, belief))
        distinct, number = np.unique(groups, axis=0, return_inverse=True)
        believed = host if belief is None else DiscretePrior(host.locations, belief)
        near = None
        if not (isinstance(guesses, str) and guesses == "plane"):
            distances, factor = design_guesses(host, guesses)
            near = factor * distances
        parts = [audit_set(rows, exact, believed, group, near) for group in distinct]
        audits = tuple(
            replace(parts[int(number[k])], nominal=None if nominal is None else float(nominal[k]))
            for k in range(len(groups))
        )
        disjoint = bool(len(groups)) and bool(np.all(np.sum(groups, axis=0) == 1))
        everywhere = np.ones(host.size, dtype=bool)
        return ChannelAudit(
            method=method,
            arithmetic=_TABLE if rows.exact_sums else _MATRIX,
            adversary="the optimal Bayesian one; the secret is a single place, released once",
            guess_set=_guess_words(guesses),
            prior="the design's prior" if belief is None else "another prior than the design's, as given",
            sets=audits,
            disjoint=disjoint,
            map_level=exact_set_level(rows, everywhere),
            map_bound=bound,
            geo_level=exact_geo_level(rows, np.asarray(host.distances)),
            quality_loss=float(quality_loss(exact, host, outputs, loss)),
            expected_error=float(expected_error(exact, host, guesses, belief)),
            prior_error=float(prior_error(host, guesses, belief)),
            least_conditional_error=float(np.min(errors)),
            worst_output=int(np.argmin(errors)),
            unpublished_outputs=int(np.count_nonzero(np.isposinf(errors))),
            certified_error=min(audit.promised_error for audit in audits) if disjoint else None,
            min_error=min_error,
        )


def audit(
    design: Obfuscation,
    table: IntegerTable | None = None,
    guesses: Guesses | None = None,
    adversary_prior: Float[np.ndarray, " n"] | None = None,
) -> ChannelAudit:
    """Audit a design by protection sets: its channel, or the table made from it, against what it claims.

    The closed-form bound on the map is D max_k ε_k/D_k, D the largest distance between places or to an output.
    Guesses are the design's unless given.
    """
    widest = _widest(design)
    return audit_channel(
        design.channel if table is None else table,
        design.prior,
        design.sets,
        design.epsilons,
        design.min_error,
        design.outputs,
        None,
        design.guesses if guesses is None else guesses,
        adversary_prior,
        design.method,
        _host(lambda: map_bound(design.epsilons, design.diameters, widest)),
    )


def audit_union(design: Obfuscation, first: int, second: int) -> tuple[Level, float]:
    """The real level on the union of two protection sets, and its closed-form bound (`union_bound`)."""
    pair = np.array([first, second])
    level = exact_set_level(ExactRows.of(design.channel), design.sets[first] | design.sets[second])
    widest = _widest(design)
    return level, _host(lambda: union_bound(design.epsilons[pair], design.diameters[pair], widest))


def _widest(design: Obfuscation) -> float:
    locations = np.asarray(design.prior.locations)
    return float(max(np.max(pairwise_distances(locations)), np.max(pairwise_distances(locations, design.outputs))))


def _host(value) -> float:
    with double_precision():
        return float(value())


def _guess_words(guesses: Guesses) -> str:
    if isinstance(guesses, str):
        return {"half": "guesses anywhere (by the factor 1/2)", "plane": "guesses anywhere in the plane"}[guesses]
    return "guesses at the map's own places" if guesses is None else f"guesses at {len(guesses)} given places"


def _listed(members: tuple[int, ...]) -> str:
    shown = ", ".join(str(place) for place in members[:6])
    return f"locations {shown}" + (f" and {len(members) - 6} more" if len(members) > 6 else "")
