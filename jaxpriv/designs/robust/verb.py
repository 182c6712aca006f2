"""`design_robust`: the least noise that withstands a continuous set of priors, verified between its points too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from jaxpriv.designs.design import design
from jaxpriv.designs.result import Design, DesignResult
from jaxpriv.designs.robust.cover import Coverage, can_enclose, check_points, cover
from jaxpriv.designs.robust.region import Bounds, Family, Region
from jaxpriv.designs.robust.result import RobustDesign
from jaxpriv.designs.robust.worst_case import Found, local_maxima
from jaxpriv.errors import CertificateError, InputError
from jaxpriv.precision import double_precision
from jaxpriv.secrets.collection import AnySecret, as_secrets
from jaxpriv.secrets.secret import EveryPoint


_GRID = {1: 8, 2: 4}
_ROUNDS = 4
_LARGEST_MARGIN = 0.2  # of a proof for the region; beyond it the points alone are checked

Point = tuple[int, np.ndarray]


def design_robust(
    family: Family | Sequence[Family],
    region: Bounds,
    secret: AnySecret | EveryPoint | Sequence[AnySecret | EveryPoint],
    *,
    epsilon: float | Sequence[float] | None = None,
    budget: float | None = None,
    order: float = 2.0,
    log_scale: bool | Sequence[bool] | Mapping[str, bool] = True,
    grid: int | None = None,
    tolerance: float = 1e-3,
    margin: float = 0.005,
    max_boxes: int = 1024,
    throw: bool = True,
    **options: Any,
) -> RobustDesign:
    """Gaussian noise of least error for a privacy target under every prior of a family, or of least worst loss.

    A grid of priors is designed for; the parameters under which that mechanism gives most away are sought by gradient
    ascent on the true loss and join the grid, until none loses more than `tolerance` above it (an exchange method for
    semi-infinite programs). What is then reported is verified. If the family bounds its covariances over boxes of
    parameters (`StationaryFamily` does) the region is covered by boxes and the bound holds for *every* prior of it;
    otherwise for every prior of a fine grid, and between those points nothing is proven.

    A guarantee for the region extends to mixtures: to any Σ that is an average of its covariances with the same
    covariance of the secret, and to every multiple of at least 1 of a covariance (both derived here; proof in
    docs/robust_designs.md).

    Args:
        family: a differentiable function from parameters to a prior, or several of them over the same region.
        region: bounds of the parameters: a mapping from name to (low, high), passed by name, or an array (p, 2),
            passed as one vector.
        secret: as in `design`; each is protected by itself.
        epsilon: target in nats at Rényi `order`, one or one for each secret.
        budget: total tr(W G) in squared units of the trace, floor included. Exactly one of the two.
        log_scale: whether a parameter is searched on a logarithmic scale; one answer, or one for each.
        grid: points an axis to start from; 8 for one parameter, 4 for two, 3 or a Sobol sequence for more.
        tolerance: relative excess of the loss above the grid's at which the exchange ends.
        margin: share of ε that is given up so that the bound holds between the points. For a target the noise is
            designed for ε (1 − margin); the number of boxes grows like 1/margin for each parameter.
        max_boxes: at most so many. When they do not suffice for a target the margin grows, up to a fifth; beyond that
            (small ε for nearly collinear fixes, or no nugget at all) only the points are checked and `covers` says so.
        throw: raise when the target could not be verified; otherwise return the mechanism with its `result`.
        options: `weights`, `requirements`, `floor_sd`, `resolution`, `effort`, … of `design`.

    Raises:
        InputError: bad arguments.
        InfeasibleError: a budget that the floor uses up.
        CertificateError: the target could not be verified over the region.
    """
    families = tuple(family) if isinstance(family, Sequence) else (family,)
    if not families or not all(callable(one) for one in families):
        raise InputError("family must be a function from parameters to a prior, or several of them.")
    if (epsilon is None) == (budget is None):
        raise InputError("give exactly one of epsilon (a target in nats) and budget (a total trace in squared units).")
    for name, value, highest in (("tolerance", tolerance, 1.0), ("margin", margin, 0.5)):
        if not 0.0 < value < highest:
            raise InputError(f"{name} is {value}; expected a number between 0 and {highest}.")
    if grid is not None and grid < 2:
        raise InputError(f"grid is {grid}; expected at least 2 points an axis.")
    if max_boxes < 1:
        raise InputError(f"max_boxes is {max_boxes}; expected at least 1.")
    if options.get("bound", "ball") != "ball":
        raise InputError("design_robust proves the ball bound; the other bounds are for a finite list of priors.")
    box = Region.of(region, log_scale)
    with double_precision():
        units = box.grid(grid or _GRID.get(box.size, 3))
        points = [(number, unit) for number in range(len(families)) for unit in units]
        secrets = as_secrets(secret, box.prior(families[0], units[0]))
        task = _Task(families, box, tuple(secrets), epsilon, budget, order, options)
        outcome = _solve(task, points, tolerance, margin, max_boxes)
    if throw and outcome.result is DesignResult.target_not_certified:
        raise CertificateError(
            f"the noise was verified at ε ≤ {outcome.epsilon:.6g} over the region, not at the target. Raise margin "
            f"({margin:g}), max_boxes ({max_boxes}), floor_sd or the nugget of the family, or narrow the region."
        )
    return outcome


@dataclass(frozen=True)
class _Task:
    families: tuple[Family, ...]
    region: Region
    secrets: tuple[AnySecret, ...]
    epsilon: float | Sequence[float] | None
    budget: float | None
    order: float
    options: dict[str, Any]

    @property
    def targets(self) -> np.ndarray:
        """ε of each secret, (secrets,); ones for a budget."""
        goal = 1.0 if self.epsilon is None else np.asarray(self.epsilon, dtype=np.float64)
        return np.broadcast_to(goal, (len(self.secrets),)).copy()

    def design(self, points: Sequence[Point], margin: float = 0.0) -> Design:
        """The design for the priors at some points, its target (if it has one) lowered by the relative `margin`."""
        goal: Any = None
        if self.epsilon is not None:
            goal = self.epsilon if margin == 0.0 else self.targets * (1.0 - margin)
            goal = goal if np.ndim(goal) == 0 else [float(one) for one in np.asarray(goal)]
        priors = [self.region.prior(self.families[number], unit) for number, unit in points]
        listed = list(self.secrets)
        return design(priors, listed, epsilon=goal, budget=self.budget, order=self.order, **self.options)

    def search(self, found: Design) -> list[Found]:
        """Where the design loses most over the whole region, relative to the targets."""
        noise = np.asarray(found.mechanism.covariance, dtype=np.float64)
        return local_maxima(self.families, self.region, self.secrets, noise, self.targets, self.order)

    def level(self, found: Design) -> float:
        """What the design promises, relative to the targets: 1 for a target, ε for a budget."""
        return 1.0 if self.budget is None else found.epsilon


def _solve(task: _Task, points: list[Point], tolerance: float, margin: float, max_boxes: int) -> RobustDesign:
    """Exchange until nothing is violated, then lower the target until the verified bound meets it."""
    found = task.design(points)
    rounds = 1
    while True:
        maxima = task.search(found)
        violation = maxima[0].ratio / task.level(found) - 1.0
        if violation <= tolerance or rounds > _ROUNDS:
            break
        points = _enlarged(task, points, maxima)
        found, rounds = task.design(points), rounds + 1
    exchanged = _Exchanged(found, points, maxima, max(violation, 0.0))
    verified = None
    if can_enclose(task.families, task.region, task.secrets):
        verified = _for_region(task, exchanged, margin, max_boxes)
    if verified is None:
        verified = _for_points(task, exchanged, tolerance)
    stats = {"rounds": rounds, "violation": violation}
    return _assembled(task, exchanged, *verified, stats, margin + tolerance)


class _Exchanged(NamedTuple):
    found: Design
    points: list[Point]
    maxima: list[Found]
    violation: float


def _for_region(task: _Task, known: _Exchanged, margin: float, max_boxes: int) -> tuple[Design, Coverage, float] | None:
    """A design, its verified bound over the region and the margin that took; None if the region could not be covered.

    A target is first lowered by the margin, and then by what the boxes' bound exceeds it.
    """
    if task.budget is not None:
        goal = (1.0 + margin) * max(known.maxima[0].ratio, known.found.epsilon)
        covered = _cover(task, known.found, goal, max_boxes)
        return (known.found, covered, margin) if np.all(np.isfinite(covered.epsilons)) else None
    given = known.violation + margin
    while given <= _LARGEST_MARGIN:
        found = task.design(known.points, given)
        covered = _cover(task, found, 1.0, max_boxes)
        if np.all(covered.epsilons <= task.targets):
            return found, covered, given
        given = 1.0 - (1.0 - given) / max(covered.estimate, 1.0 + margin)
    return None


def _for_points(task: _Task, known: _Exchanged, tolerance: float) -> tuple[Design, Coverage, float]:
    """The same for the points of the search, every one verified; nothing is proven between them."""
    checked: list[Point] = [(number, unit) for number in range(len(task.families)) for unit in task.region.scan()]
    checked += known.points + [(one.family, one.unit) for one in known.maxima]
    given = 0.0 if task.budget is not None else 2.0 * max(known.violation, tolerance)
    while True:
        found = known.found if task.budget is not None else task.design(known.points, given)
        covered = check_points(task.families, task.region, checked, task.secrets, found.mechanism, task.order)
        if task.budget is not None or np.all(covered.epsilons <= task.targets) or given > _LARGEST_MARGIN:
            return found, covered, given
        given *= 2.0


def _cover(task: _Task, found: Design, goal: float, max_boxes: int) -> Coverage:
    arguments = (task.families, task.region, task.secrets, found.mechanism, task.targets, task.order)
    return cover(*arguments, goal * (1.0 - 1e-9), max_boxes, always=task.budget is not None)


def _enlarged(task: _Task, points: list[Point], maxima: list[Found]) -> list[Point]:
    """The points, the new maxima, and halfway points of the widest gaps up to twice as many: few sizes to compile."""
    wanted = 2 * len(points)
    new = list(points)
    for one in maxima:
        if all(number != one.family or np.max(np.abs(unit - one.unit)) > 1e-6 for number, unit in new):
            new.append((one.family, one.unit))
    scan = task.region.scan()
    while len(new) < wanted:
        gaps = []
        for number in range(len(task.families)):
            near = [unit for other, unit in new if other == number]
            away = np.min(np.max(np.abs(scan[:, None, :] - np.array(near)[None]), axis=2), axis=1)
            gaps.append((float(np.max(away)), number, scan[int(np.argmax(away))]))
        widest = max(gaps, key=lambda gap: gap[0])
        new.append((widest[1], widest[2]))
    return new[:wanted]


def _over_boxes(task: _Task, found: Design, goal: float, max_boxes: int) -> Coverage:
    arguments = (task.families, task.region, task.secrets, found.mechanism, task.targets, task.order)
    return cover(*arguments, goal * (1.0 - 1e-9), max_boxes, always=task.budget is not None)


def _at_points(task: _Task, found: Design, points: list[Point], maxima: list[Found]) -> Coverage:
    checked: list[Point] = [(number, unit) for number in range(len(task.families)) for unit in task.region.scan()]
    checked += points + [(one.family, one.unit) for one in maxima]
    return check_points(task.families, task.region, checked, task.secrets, found.mechanism, task.order)


def _assembled(
    task: _Task,
    known: _Exchanged,
    found: Design,
    covered: Coverage,
    margin: float,
    stats: dict[str, Any],
    tolerance: float,
) -> RobustDesign:
    epsilon = float(np.max(covered.epsilons))
    maxima = known.maxima if found is known.found else task.search(found)
    achieved = found.cost if task.budget is None else epsilon
    lower = known.found.lower_bound
    gap = (achieved - lower) / achieved if np.isfinite(achieved) and achieved > 0.0 else 1.0
    if task.budget is None:
        met, failure = bool(np.all(covered.epsilons <= task.targets)), DesignResult.target_not_certified
    else:
        met, failure = bool(np.isfinite(epsilon)), DesignResult.not_certified
    reached = DesignResult.optimal if gap <= tolerance else DesignResult.suboptimal
    one_target = float(task.targets[0]) if np.ptp(task.targets) == 0.0 else 1.0
    return RobustDesign(
        mechanism=found.mechanism,
        epsilon=epsilon,
        epsilons=covered.epsilons,
        covers="region" if covered.whole else "points",
        cost=found.cost,
        lower_bound=lower,
        gap=float(gap),
        result=reached if met else failure,
        worst=(task.region.named(maxima[0].unit), maxima[0].ratio * one_target),
        points=tuple((number, task.region.named(unit)) for number, unit in known.points),
        design=found,
        stats={**stats, "margin": margin, "checked": covered.count, "points": len(known.points)},
        families=task.families,
        region=task.region,
        secrets=task.secrets,
    )
