"""Lower bounds: never above what any feasible mechanism reaches, and nearly reached by the optimal one."""

from __future__ import annotations

import math

import exact_loss as oracle
import flint
import numpy as np
import pytest

from jaxpriv.certificates import (
    cost_lower_bound,
    cost_upper,
    loss_bounds,
    loss_lower_bound,
    majorant_lower_bound,
    trial_from_design,
)
from jaxpriv.errors import InputError


def kernel(size: int, scale: float = 3.0, nugget: float = 1e-3) -> np.ndarray:
    times = np.arange(size, dtype=float)
    return np.exp(-((times[:, None] - times) ** 2) / (2 * scale**2)) + nugget * np.eye(size)


def joint_of(prior: np.ndarray, secret: list[int]) -> tuple[np.ndarray, np.ndarray]:
    return prior[:, secret], prior[np.ix_(secret, secret)]


def floor_matrix(prior: np.ndarray, secret: list[int], target: float) -> np.ndarray:
    """H (S + I/t) H' - Sigma: the loss is at most t exactly when the noise is above it."""
    cross, own = joint_of(prior, secret)
    regression = np.linalg.solve(own, cross.T).T
    return regression @ (own + np.eye(len(secret)) / target) @ regression.T - prior


def least_noise(prior: np.ndarray, secret: list[int], target: float) -> np.ndarray:
    values, vectors = np.linalg.eigh(floor_matrix(prior, secret, target))
    kept = np.maximum(values[-len(secret) :], 0)
    return vectors[:, -len(secret) :] * np.sqrt(kept)


def loss_of(prior: np.ndarray, secret: list[int], factor: np.ndarray, floor: float):
    return loss_bounds(prior, [joint_of(prior, secret)], factor, floor)[0]


@pytest.mark.parametrize("secret", [[6], [6, 7], [2, 7, 11]])
@pytest.mark.parametrize("floor", [0.0, 1e-9, 1e-4])
def test_the_closed_form_optimum_is_certified_optimal(secret: list[int], floor: float) -> None:
    prior = kernel(16)
    target = 3.0
    values, vectors = np.linalg.eigh(floor_matrix(prior, secret, target))
    above = np.maximum(values - floor, 0)  # with a floor the optimum is eta I + (F - eta I)_+
    factor = vectors * np.sqrt(above)
    factor = factor[:, above > 0]
    bound = loss_of(prior, secret, factor, floor)
    cost = cost_upper(factor, floor)
    V, Z = trial_from_design(prior, joint_of(prior, secret), factor, floor)
    lower = loss_lower_bound(prior, joint_of(prior, secret), V, Z, cost, floor)
    # float64 designs are optimal to about the square root of nothing: V is off by 1e-12 and counts squared
    assert 0 <= (bound.upper - lower) / bound.upper < 1e-9
    least = cost_lower_bound(prior, joint_of(prior, secret), V, Z, bound.upper, floor)
    assert 0 <= (cost - least) / cost < 1e-9


def test_no_feasible_mechanism_is_below_the_bound_whatever_the_trial() -> None:
    rng = np.random.default_rng(8)
    prior, floor = kernel(10), 1e-3
    for secret in ([4], [4, 5]):
        joint = joint_of(prior, secret)
        width = len(secret)
        design = least_noise(prior, secret, 2.0)
        best, dual = trial_from_design(prior, joint, design, floor)
        budget = float(np.sum(design**2)) + 10 * floor
        losses = []
        for _ in range(60):
            factor = rng.standard_normal((10, int(rng.integers(1, 11)))) + design @ rng.standard_normal((width, 1))
            factor *= math.sqrt((budget - 10 * floor) / np.sum(factor**2)) * (1 - 1e-12)
            losses.append(loss_of(prior, secret, factor, floor).upper)
        losses.append(loss_of(prior, secret, design * (1 - 1e-12), floor).upper)
        positive = 0
        for size in (0.0, 1e-8, 1e-3, 0.1, 1.0):
            for _ in range(8):
                V = best + size * np.max(np.abs(best)) * rng.standard_normal(best.shape)
                root = np.linalg.cholesky(dual + 1e-12 * np.eye(width)) + size * rng.standard_normal((width, width))
                bound = loss_lower_bound(prior, joint, V, root @ root.T, budget, floor)
                assert bound <= min(losses)
                positive += bound > 0.2 * min(losses)
        assert positive >= 16  # otherwise the comparison could not fail


def test_scales_of_the_trial_do_not_matter() -> None:
    prior = kernel(12)
    joint = joint_of(prior, [5, 6])
    design = least_noise(prior, [5, 6], 2.0)
    V, Z = trial_from_design(prior, joint, design, 1e-6)
    first = loss_lower_bound(prior, joint, V, Z, 2.0, 1e-6)
    second = loss_lower_bound(prior, joint, 64 * V, Z / 1024, 2.0, 1e-6)
    assert second == pytest.approx(first, rel=1e-12)


def block_optimum(prior: np.ndarray, secret: int, target: float) -> tuple[np.ndarray, float]:
    """The best noise of the published structure for a basic secret, by a scan: variance on the secret, G_UU beside."""
    own = prior[secret, secret]
    rest = [i for i in range(len(prior)) if i != secret]
    regression = prior[rest, secret] / own
    left = prior[np.ix_(rest, rest)] - np.outer(regression, regression) * own

    def noise(share: float) -> tuple[float, np.ndarray]:
        values, vectors = np.linalg.eigh(np.outer(regression, regression) / share - left)
        top = max(values[-1], 0.0)
        return 1 / (target - share) + top, np.sqrt(top) * vectors[:, -1]

    low, high = 1e-6 * target, (1 - 1e-6) * target
    for _ in range(200):  # golden section: the cost is convex in the share
        first, second = high - (high - low) / 1.618033988749895, low + (high - low) / 1.618033988749895
        low, high = (low, second) if noise(first)[0] < noise(second)[0] else (first, high)
    share = (low + high) / 2
    cost, direction = noise(share)
    factor = np.zeros((len(prior), 2))
    factor[secret, 0] = math.sqrt(1 / (target - share))
    factor[rest, 1] = direction
    return factor, cost


def test_block_structure_bounds() -> None:
    prior, secret = kernel(14), 6
    factor, cost = block_optimum(prior, secret, 3.0)
    joint = joint_of(prior, [secret])
    V, Z = trial_from_design(prior, joint, factor, 0.0, structure="block", indices=[secret])
    upper = loss_of(prior, [secret], factor, 0.0).upper
    block = loss_lower_bound(prior, joint, V, Z, cost, 0.0, structure="block", indices=[secret])
    joint_bound = loss_lower_bound(prior, joint, V, Z, cost, 0.0)
    assert joint_bound <= block <= upper
    # the scan fixes the share to about 1e-8, which moves the bound in first order
    assert block > upper * (1 - 1e-6)
    with pytest.raises(InputError, match="indices"):
        loss_lower_bound(prior, joint, V, Z, cost, 0.0, structure="block")


def test_diagonal_structure_bound_against_random_diagonal_noise() -> None:
    rng = np.random.default_rng(4)
    prior, budget = kernel(8), 2.0
    joint = joint_of(prior, [3])
    best = math.inf
    for _ in range(200):
        spread = rng.dirichlet(np.ones(8) * 0.5) * budget * (1 - 1e-12)
        factor = np.diag(np.sqrt(spread))
        upper = loss_of(prior, [3], factor, 0.0).upper
        V, Z = trial_from_design(prior, joint, factor, 1e-12, structure="diagonal")
        bound = loss_lower_bound(prior, joint, V, Z, budget, 0.0, structure="diagonal")
        assert bound <= upper
        best = min(best, upper)
        assert bound <= best
    joint_bound = loss_lower_bound(prior, joint, V, Z, budget, 0.0)
    assert joint_bound <= bound


def test_weighted_budgets_agree_with_a_change_of_variables() -> None:
    """With X scaled by 4 the weights are divided by 16: the same problem in other words."""
    rng = np.random.default_rng(9)
    prior = kernel(10)
    scale = 2.0 ** rng.integers(-2, 3, 10)
    joint = joint_of(prior, [4])
    factor = least_noise(prior, [4], 2.0)
    V, Z = trial_from_design(prior, joint, factor, 1e-6)
    plain = loss_lower_bound(prior, joint, V, Z, 1.7, 0.0)
    moved = prior * np.outer(scale, scale)
    moved_joint = (prior[:, [4]] * scale[:, None], prior[[4]][:, [4]])
    for weights in (1 / scale**2, np.diag(1 / scale**2)):
        weighted = loss_lower_bound(moved, moved_joint, V / scale[:, None], Z, 1.7, 0.0, weights=weights)
        assert weighted == pytest.approx(plain, rel=1e-9)
    assert cost_upper(factor * scale[:, None], 0.0, 1 / scale**2) == pytest.approx(np.sum(factor**2), rel=1e-15)


@pytest.mark.parametrize("full", [False, True])
def test_the_weighted_closed_form_is_certified_optimal(full: bool) -> None:
    """Least tr(W G): `R^-1 (R F R')_+ R^-T` with W = R'R and F the floor of two neighbouring points."""
    rng = np.random.default_rng(7)
    prior, secret, target = kernel(10), [4, 5], 3.0
    weights = rng.uniform(0.5, 4.0, 10)
    if full:
        root = rng.standard_normal((10, 10))
        weights = root @ root.T / 10 + np.eye(10)
        weights = (weights + weights.T) / 2
    root = np.linalg.cholesky(weights if full else np.diag(weights)).T
    values, vectors = np.linalg.eigh(root @ floor_matrix(prior, secret, target) @ root.T)
    factor = np.linalg.solve(root, vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0)))
    joint = joint_of(prior, secret)
    V, Z = trial_from_design(prior, joint, factor, 0.0, weights=weights)
    cost, upper = cost_upper(factor, 0.0, weights), loss_of(prior, secret, factor, 0.0).upper
    assert 0 <= 1 - loss_lower_bound(prior, joint, V, Z, cost, 0.0, weights=weights) / upper < 1e-9
    assert 0 <= 1 - cost_lower_bound(prior, joint, V, Z, upper, 0.0, weights=weights) / cost < 1e-9


def test_several_secrets_and_priors_in_one_bound() -> None:
    rng = np.random.default_rng(12)
    first, second = kernel(10, 2.0), kernel(10, 4.0)
    problems = [(first, [2]), (second, [2]), (first, [6, 7])]
    targets, floor, budget = [2.0, 2.0, 3.0], 1e-4, 3.0
    joints = [joint_of(*problem) for problem in problems]
    for _ in range(20):
        factor = rng.standard_normal((10, 4))
        factor *= math.sqrt((budget - 10 * floor) / np.sum(factor**2)) * (1 - 1e-12)
        noise = factor @ factor.T + floor * np.eye(10)
        V, Z = [], []
        for (prior, _), (cross, own) in zip(problems, joints, strict=True):
            solved = np.linalg.solve(prior + noise, cross)
            V.append(np.linalg.solve(own - cross.T @ solved, solved.T).T)
            root = rng.standard_normal(own.shape)
            Z.append(root @ root.T * rng.random())
        worst = max(
            loss_bounds(prior, [joint], factor, floor)[0].upper / target
            for (prior, _), joint, target in zip(problems, joints, targets, strict=True)
        )
        priors = [prior for prior, _ in problems]
        bound = loss_lower_bound(priors, joints, V, Z, budget, floor, targets=targets)
        assert 0 < bound <= worst
        # the same numbers read as a cost: this noise meets the targets enlarged by `worst`
        enlarged = [target * worst * (1 + 1e-12) for target in targets]
        least = cost_lower_bound(priors, joints, V, Z, enlarged, floor)
        assert 10 * floor * (1 - 1e-15) <= least <= budget


def test_the_majorant_dual_reaches_a_published_optimum() -> None:
    """Three secrets of a squared-exponential prior (n = 12, scale 2, nugget 1e-3): least trace 3.002078118.

    Both the value (agreeing with an interior-point solver to 1e-9) and the closed form of one floor are known.
    """
    prior = kernel(12, 2.0, 1e-3)
    values, vectors = np.linalg.eigh(floor_matrix(prior, [5], 3.0))
    one = majorant_lower_bound(prior, [joint_of(prior, [5])], [vectors[:, -1:]], [3.0], 0.0)
    assert one == pytest.approx(0.9449237262519, rel=1e-11)
    assert one <= values[-1] * (1 + 1e-14)

    secrets, targets = [[2], [5], [9]], [2.0, 3.0, 4.0]
    floors = [floor_matrix(prior, s, t) for s, t in zip(secrets, targets, strict=True)]
    duals = [np.linalg.eigh(f)[1][:, -1:] for f in floors]
    shift = float(np.linalg.eigvalsh(prior)[-1])
    for _ in range(3000):  # monotone ascent of the dual over matrices of norm at most one
        moved = np.concatenate([z + f @ z / shift for f, z in zip(floors, duals, strict=True)], axis=1)
        left, singular, right = np.linalg.svd(moved, full_matrices=False)
        clipped = left * np.minimum(singular, 1) @ right
        duals = [clipped[:, i : i + 1] for i in range(3)]
    joints = [joint_of(prior, s) for s in secrets]
    bound = majorant_lower_bound(prior, joints, duals, targets, 0.0)
    assert bound == pytest.approx(3.002078118, rel=1e-9)
    assert bound <= 3.0020781181
    # a dual outside the ball is scaled back, not trusted
    assert majorant_lower_bound(prior, joints, [3 * z for z in duals], targets, 0.0) == pytest.approx(bound, rel=1e-9)


def test_lower_bound_of_the_loss_against_ball_arithmetic() -> None:
    """The value itself, in exact arithmetic, for vectors of the optimal design: the bound is below and close."""
    prior, secret, floor = kernel(9), [3, 4], 1e-5
    joint = joint_of(prior, secret)
    design = least_noise(prior, secret, 2.0)
    V, Z = trial_from_design(prior, joint, design, floor)
    budget = cost_upper(design, floor)
    bound = loss_lower_bound(prior, joint, V, Z, budget, floor)
    truth = oracle.true_loss(prior, joint[0], joint[1], design, floor)
    assert flint.arb(bound) <= truth
    assert bound > float(truth.mid()) * (1 - 1e-4)  # the design ignores the floor, which costs 9e-5 of its budget


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"budget": 1e-9}, "below the cost"),
        ({"structure": "banded"}, "structure"),
        ({"V": np.ones((2, 1))}, "must have shapes"),
        ({"Z": np.ones((2, 2))}, "must have shapes"),
        ({"weights": -np.ones(6)}, "negative"),
        ({"floor_variance": -1.0}, "negative"),
        ({"targets": [0.0]}, "positive"),
        ({"joints": []}, "at least one joint"),
    ],
)
def test_bad_arguments_are_refused(change: dict, words: str) -> None:
    prior = kernel(6)
    arguments = {
        "covariance": prior,
        "joints": [joint_of(prior, [2])],
        "V": [np.ones((6, 1))],
        "Z": [np.ones((1, 1))],
        "budget": 1.0,
        "floor_variance": 1e-3,
    }
    with pytest.raises(InputError, match=words):
        loss_lower_bound(**{**arguments, **change})


def test_hopeless_trials_give_zero_or_the_floor_alone() -> None:
    prior = kernel(6)
    joint = joint_of(prior, [2])
    for V in (np.zeros((6, 1)), -np.linalg.solve(prior, joint[0]), np.full((6, 1), 1e200)):
        assert loss_lower_bound(prior, joint, V, np.eye(1), 1.0, 0.0) == 0.0
        assert cost_lower_bound(prior, joint, V, np.eye(1), 2.0, 0.25) == 1.5
