"""The loss certificate against 900-bit ball arithmetic, and the proof that this comparison can fail."""

from __future__ import annotations

import math
from dataclasses import dataclass

import exact_loss as oracle
import flint
import numpy as np
import pytest

from jaxpriv.certificates import loss, loss_bounds
from jaxpriv.certificates.loss import LossBound
from jaxpriv.errors import InputError


FAST, FULL = 60, 400


@dataclass
class Case:
    problem: dict
    truth: flint.arb | None
    bound: LossBound


def bound_of(problem: dict, **radii: object) -> LossBound:
    joints = [(problem["cross"], problem["variance"])]
    return loss_bounds(problem["covariance"], joints, problem["factor"], problem["floor"], **radii)[0]


def truth_of(problem: dict) -> flint.arb | None:
    return oracle.true_loss(
        problem["covariance"], problem["cross"], problem["variance"], problem["factor"], problem["floor"]
    )


def cases(count: int) -> list[Case]:
    return [Case(problem, truth_of(problem), bound_of(problem)) for problem in oracle.problems(count)]


def naive(problem: dict) -> float:
    cross, own = problem["cross"], problem["variance"]
    regression = np.linalg.solve(own, cross.T).T
    left = problem["covariance"] - regression @ own @ regression.T
    noise = problem["factor"] @ problem["factor"].T + problem["floor"] * np.eye(len(left))
    gain = regression.T @ np.linalg.solve(left + noise, regression)
    return float(np.linalg.eigvalsh((gain + gain.T) / 2)[-1])


@pytest.fixture(scope="module")
def fast_cases() -> list[Case]:
    return cases(FAST)


def check(solved: list[Case]) -> None:
    slacks: dict[int, list[float]] = {}
    for number, case in enumerate(solved):
        width, benign = case.problem["cross"].shape[1], case.problem["benign"]
        if case.truth is None:
            assert math.isinf(case.bound.upper), number
            continue
        assert oracle.below(case.bound.lower, case.truth), number
        assert flint.arb(case.bound.upper) >= case.truth, number
        if width <= 2 and benign:
            assert math.isfinite(case.bound.upper), number
        if math.isfinite(case.bound.upper):
            slacks.setdefault(width, []).append(oracle.relative(case.bound.upper, case.truth))
    # About seven roundings outward for one dimension; double-double for more (the bounds are 1e-15 and 3e-14).
    assert np.median(slacks[1]) <= 1e-15
    assert np.median(slacks[2]) <= 3e-14


def test_bounds_enclose_the_true_loss(fast_cases: list[Case]) -> None:
    check(fast_cases)


@pytest.mark.slow
def test_bounds_enclose_the_true_loss_on_four_hundred_problems() -> None:
    solved = cases(FULL)
    check(solved)
    finite = [case for case in solved if case.truth is not None]
    # Certified in nearly all cases: what remains are singular secrets with no floor.
    assert sum(math.isinf(case.bound.upper) for case in finite) <= 0.03 * len(finite)
    too_low = 0
    for case in finite:
        try:
            too_low += oracle.relative(naive(case.problem), case.truth) < -1e-6
        except np.linalg.LinAlgError:
            continue
    assert too_low >= 3  # the plain formula must fail here, or the problems are too easy


def violations(problems: list[dict], **radii: object) -> int:
    count = 0
    for problem in problems:
        bound, truth = bound_of(problem, **radii), truth_of(problem)
        if truth is not None:
            count += not (flint.arb(bound.upper) >= truth) or not oracle.below(bound.lower, truth)
    return count


def harmless(count: int, width: int, seed: int) -> list[dict]:
    """Well-conditioned problems: nothing but the certificate's own roundings can go wrong."""
    rng = np.random.default_rng(seed)
    problems = []
    for _ in range(count):
        size = int(rng.integers(width, 7) if width > 1 else rng.integers(1, 5))
        root = rng.standard_normal((size, size + 3))
        prior = root @ root.T / size + 0.1 * np.eye(size)
        prior = (prior + prior.T) / 2
        secret = np.arange(width)
        problems.append(
            {
                "covariance": prior,
                "cross": prior[:, secret],
                "variance": prior[np.ix_(secret, secret)],
                "factor": rng.standard_normal((size, 2)),
                "floor": 0.25,
            }
        )
    return problems


def blurred(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the approximate solve by one that is wrong in the third digit: every solution is admissible."""
    original = loss.Release.propose_solution
    rng = np.random.default_rng(5)

    def worse(self: loss.Release, right: np.ndarray) -> np.ndarray:
        solution = original(self, right)
        return solution * (1 + 1e-3 * rng.standard_normal(solution.shape))

    monkeypatch.setattr(loss.Release, "propose_solution", worse)
    monkeypatch.setattr("jaxpriv.certificates.release._REFINEMENTS", 0)


@pytest.mark.parametrize("width", [1, 2])
def test_a_bad_solve_costs_its_error_squared_and_never_soundness(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    problems = harmless(20, width, 7)
    blurred(monkeypatch)
    assert violations(problems) == 0
    # errors of 1e-3 in the solution: about 1e-6 in Q, times a condition number of up to 1e3
    assert max(oracle.relative(bound_of(p).upper, truth_of(p)) for p in problems) < 1e-2


@pytest.mark.parametrize("width", [1, 2])
def test_dropping_the_tail_is_noticed(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    blurred(monkeypatch)
    monkeypatch.setattr(
        "jaxpriv.certificates.release.Solution.residual_norms",
        lambda self, spread=0.0: np.zeros(self.residual_hi.shape[1]),
    )
    assert violations(harmless(20, width, 7)) > 0


def test_rounding_inward_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    problems = harmless(40, 1, 3)
    assert violations(problems) == 0
    up, down = loss.up, loss.down
    monkeypatch.setattr(loss, "up", lambda x: x if math.isinf(x) else down(x))
    assert violations(problems) > 0
    monkeypatch.setattr(loss, "up", up)
    monkeypatch.setattr(loss, "down", up)
    assert violations(problems) > 0


def perturbed(problem: dict, rng: np.random.Generator, reach: float, hard: bool) -> dict:
    """Another joint covariance within the entrywise reach; `hard` moves every entry to make the posterior smallest."""
    cross, own = problem["cross"], problem["variance"]
    width, size = own.shape[0], len(cross)
    joint = np.block([[own, cross.T], [cross, problem["covariance"]]])
    radius = (reach - 2.0**-52) * np.abs(joint)  # the sum below is rounded once more, and must stay inside
    if hard:
        noise = problem["factor"] @ problem["factor"].T + problem["floor"] * np.eye(size)
        weights = np.linalg.solve(problem["covariance"] + noise, cross)
        z = np.concatenate([np.eye(width), -weights])[:, 0]
        change = -np.sign(np.outer(z, z)) * radius
    else:
        change = np.triu(rng.uniform(-1, 1, joint.shape)) * radius
        change = np.triu(change) + np.triu(change, 1).T
    moved = joint + change
    return {
        **problem,
        "variance": moved[:width, :width],
        "cross": moved[width:, :width],
        "covariance": moved[width:, width:],
    }


def radii_of(problem: dict, reach: float) -> dict:
    return {
        "covariance_radius": reach * np.abs(problem["covariance"]),
        "cross_radius": reach * np.abs(problem["cross"]),
        "variance_radius": [reach * np.abs(problem["variance"])],
    }


def uncertain(count: int, reach: float, draws: int, shrink: float = 1.0) -> tuple[int, int, float]:
    """How many perturbed problems violate the bound, how many bounds are finite, the smallest relative slack."""
    rng = np.random.default_rng(11)
    broken = finite = 0
    tightest = math.inf
    small = [p for p in oracle.problems(count, seed=3) if p["cross"].shape[1] <= 2 and p["size"] <= 32]
    for problem in small:
        if truth_of(problem) is None:
            continue
        bound = bound_of(problem, **radii_of(problem, reach * shrink))
        finite += math.isfinite(bound.upper)
        for draw in range(draws):
            truth = truth_of(perturbed(problem, rng, reach, hard=draw == 0))
            if truth is None:
                broken += math.isfinite(bound.upper)
                continue
            broken += not (flint.arb(bound.upper) >= truth) or not oracle.below(bound.lower, truth)
            if math.isfinite(bound.upper):
                tightest = min(tightest, oracle.relative(bound.upper, truth))
    return broken, finite, tightest


@pytest.mark.parametrize("reach", [2.0**-50, 1e-8, 1e-4])
def test_uncertain_priors_stay_within_the_bounds(reach: float) -> None:
    broken, finite, _ = uncertain(24, reach, 3)
    assert broken == 0
    assert finite >= 2  # the honest answer is infinite where floor and nugget are below the uncertainty


@pytest.mark.slow
def test_uncertain_priors_stay_within_the_bounds_on_many_samples() -> None:
    for reach in (2.0**-50, 1e-12, 1e-8, 1e-4):
        broken, finite, tightest = uncertain(120, reach, 16)
        assert broken == 0
        assert finite >= 10
        assert tightest < 20 * reach * 1e6  # not absurdly wide where the worst perturbation is tried


def test_a_tenth_of_the_radius_is_noticed() -> None:
    assert uncertain(24, 1e-6, 1)[0] == 0
    assert uncertain(24, 1e-6, 1, shrink=0.1)[0] > 0


@pytest.mark.parametrize("number", [0, 1, 2, 5])
def test_permuting_the_trace_changes_nothing_but_rounding(number: int) -> None:
    problem = list(oracle.problems(6, seed=17))[number]
    order = np.random.default_rng(0).permutation(problem["size"])
    moved = {
        **problem,
        "covariance": problem["covariance"][np.ix_(order, order)],
        "cross": problem["cross"][order],
        "factor": problem["factor"][order],
    }
    first, second = bound_of(problem), bound_of(moved)
    assert first.lower <= second.upper
    assert second.lower <= first.upper


def test_a_change_of_units_by_a_power_of_two_is_exact() -> None:
    for problem in oracle.problems(24, seed=23):
        unit = 2.0**13
        scaled = {
            **problem,
            "covariance": problem["covariance"] * unit**2,
            "cross": problem["cross"] * unit**2,
            "variance": problem["variance"] * unit**2,
            "factor": problem["factor"] * unit,
            "floor": problem["floor"] * unit**2,
        }
        first, second = bound_of(problem), bound_of(scaled)
        assert second.upper * unit**2 == first.upper
        assert second.lower * unit**2 == first.lower


def test_more_noise_is_never_certified_as_worse() -> None:
    rng = np.random.default_rng(29)
    for problem in oracle.problems(16, seed=31):
        extra = rng.standard_normal((problem["size"], 2)) * math.sqrt(problem["covariance"][0, 0]) * 0.1
        more = {**problem, "factor": np.concatenate([problem["factor"], extra], axis=1)}
        assert bound_of(more).lower <= bound_of(problem).upper


def test_many_secrets_at_once_agree_with_one_at_a_time() -> None:
    problem = next(p for p in oracle.problems(40, seed=37) if p["benign"] and p["size"] > 20)
    prior, size = problem["covariance"], problem["size"]
    chosen = [[i] for i in range(0, size, 3)] + [[1, 2], [4, 9, 11]]
    joints = [(prior[:, s], prior[np.ix_(s, s)]) for s in chosen]
    together = loss_bounds(prior, joints, problem["factor"], problem["floor"])
    for joint, bound in zip(joints, together, strict=True):
        alone = loss_bounds(prior, [joint], problem["factor"], problem["floor"])[0]
        # refinement stops for all columns together, so the last digits may differ, the enclosures must meet
        assert alone.lower <= bound.upper
        assert bound.lower <= alone.upper
        assert bound.upper <= alone.upper * (1 + 1e-9)


def test_general_linear_secrets() -> None:
    rng = np.random.default_rng(41)
    times = np.arange(20.0)
    prior = np.exp(-np.abs(times[:, None] - times) / 5)
    for width in (1, 2, 3):
        weights = rng.standard_normal((width, 20))
        cross = prior @ weights.T
        own = weights @ cross
        problem = {
            "covariance": prior,
            "cross": cross,
            "variance": (own + own.T) / 2,
            "factor": rng.standard_normal((20, 4)),
            "floor": 1e-3,
        }
        truth, bound = truth_of(problem), bound_of(problem)
        assert flint.arb(bound.upper) >= truth
        assert oracle.below(bound.lower, truth)
        assert bound.upper <= bound.lower * (1 + 1e-13)


def test_known_answer_of_white_noise_and_independent_points() -> None:
    # independent points of variance 1 and noise 1/4: the release adds precision 4, exactly
    bound = loss_bounds(np.eye(3), [(np.eye(3)[:, :1], np.eye(1))], np.zeros((3, 0)), 0.25)[0]
    assert bound.lower <= 4.0 <= bound.upper
    assert bound.upper <= 4 * (1 + 2e-15)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"covariance": np.eye(3)[:2]}, "shape"),
        ({"covariance": np.array([[1, 2.0, 0], [0, 1, 0], [0, 0, 1]])}, "not symmetric"),
        ({"covariance": np.full((3, 3), np.nan)}, "not finite"),
        ({"cross": np.ones((2, 1))}, "cross must have shape"),
        ({"variance": np.eye(2)}, "variance must have shape"),
        ({"factor": np.ones((2, 1))}, "factor must have shape"),
        ({"floor": -1.0}, "negative"),
        ({"floor": math.inf}, "not finite"),
    ],
)
def test_bad_arguments_are_refused(change: dict, words: str) -> None:
    problem = {
        "covariance": np.eye(3),
        "cross": np.eye(3)[:, :1],
        "variance": np.eye(1),
        "factor": np.zeros((3, 0)),
        "floor": 0.25,
    }
    with pytest.raises(InputError, match=words):
        bound_of({**problem, **change})


@pytest.mark.parametrize(
    ("prior", "own"),
    [
        (np.zeros((3, 3)), np.eye(1)),  # nothing is random
        (-np.eye(3), np.eye(1)),
        (np.eye(3), np.zeros((1, 1))),  # the secret is known already
        (np.eye(3), -np.eye(1)),
        (np.eye(3), np.eye(1) * 0.5),  # not a covariance: the secret is less uncertain than what it explains
        (np.eye(3) * 1e300, np.eye(1)),
    ],
)
def test_nothing_is_claimed_where_the_loss_is_not_defined(prior: np.ndarray, own: np.ndarray) -> None:
    bound = loss_bounds(prior, [(np.eye(3)[:, :1], own)], np.zeros((3, 0)), 0.0)[0]
    assert bound == LossBound(math.inf, 0.0) or math.isinf(bound.upper)
