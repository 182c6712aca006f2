"""Designs of many traces at once against the loop of single designs, and what happens to bad traces."""

from __future__ import annotations

import numpy as np
import pytest

from jaxpriv import GaussianPrior, LinearSecret, ProcessPrior, Secret, certify, design, kernels
from jaxpriv.designs.batch.buckets import bucket_of, chunk_of, prior_bucket
from jaxpriv.designs.batch.devices import compilations
from jaxpriv.designs.batch.verb import design_batch, design_batches
from jaxpriv.designs.result import DesignResult
from jaxpriv.errors import InputError


def traces(rng: np.random.Generator, sizes: list[int]) -> tuple[list[ProcessPrior], list[Secret]]:
    """Matérn-3/2 priors (metres, seconds) of different length scales, the middle fix secret within 20 m."""
    priors = []
    for n in sizes:
        times = np.sort(rng.uniform(0.0, 120.0, n))
        priors.append(ProcessPrior(kernels.matern32(float(rng.uniform(10, 60)), 30.0), times, noise_sd=1.0))
    return priors, [Secret([n // 2], radius=20.0) for n in sizes]


@pytest.mark.parametrize("goal", [{"epsilon": 0.7}, {"budget": 900.0}])
def test_one_prior_each_is_the_loop_of_single_designs(rng, goal):
    priors, secrets = traces(rng, [9, 16, 12, 14])
    batch = design_batch(priors, secrets, **goal)
    assert len(batch) == 4 and not batch.refusals
    for i, (prior, secret) in enumerate(zip(priors, secrets, strict=True)):
        alone = design(prior, secret, **goal)
        assert batch.results[i] is DesignResult.optimal
        # Two codes for one optimum: a target is shaded by 1e-9, and a power answers that with a few times as much.
        assert batch.cost[i] == pytest.approx(alone.cost, rel=1e-8)
        assert batch.epsilon[i] == pytest.approx(alone.epsilon, rel=1e-8)
        assert batch.lower_bound[i] <= (batch.cost[i] if "epsilon" in goal else batch.epsilon[i])
        if "epsilon" in goal:
            assert batch.epsilon[i] <= goal["epsilon"]
        else:
            assert batch.cost[i] <= goal["budget"]
        one = batch[i]
        checked = certify(prior, secret, one.mechanism)
        # The batch covers the rounding of kernels that are evaluated together as well: 2^-50 of the covariances, which
        # a loss magnifies by their condition given the noise, up to 1e5 here.
        assert one.epsilon >= float(checked.epsilon_lower.max()) and one.epsilon == pytest.approx(
            checked.epsilon, rel=1e-9
        )
        assert one.mechanism.size == prior.size and one.certificate.prior_psd in ("verified", "not verified")


def test_stacked_covariances_and_targets_of_their_own(rng):
    priors, _ = traces(rng, [12, 12, 12])
    stack = np.stack([np.asarray(prior.covariance) for prior in priors])
    batch = design_batch(stack, Secret([4], radius=20.0), epsilon=[0.5, 1.0, 2.0])
    for i, target in enumerate((0.5, 1.0, 2.0)):
        alone = design(GaussianPrior(stack[i]), Secret([4], radius=20.0), epsilon=target)
        # The shading of a target, 1e-9, and what a power makes of it.
        assert batch.cost[i] == pytest.approx(alone.cost, rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("goal", [{"epsilon": 0.7}, {"budget": 3000.0}])
def test_several_priors_are_designed_within_their_certified_gaps(rng, goal):
    sets, secrets = [], []
    for n in (11, 14):
        times = np.sort(rng.uniform(0.0, 120.0, n))
        sets.append([ProcessPrior(kernels.matern32(20.0 * f, 30.0), times, noise_sd=1.0) for f in (0.5, 1.0, 2.0)])
        secrets.append(Secret([n // 2], radius=20.0))
    batch = design_batch(sets, secrets, resolution=0.5, **goal)
    for i in range(2):
        alone = design(sets[i], secrets[i], resolution=0.5, **goal)
        found, best = (batch.cost[i], alone.cost) if "epsilon" in goal else (batch.epsilon[i], alone.epsilon)
        # Both are within their gaps of one optimum; 1e-9 is for the product of the two and the rounding here.
        assert abs(found / best - 1.0) <= batch.gap[i] + alone.gap + 1e-9
        # What the rounds go on for; these problems are easy.
        assert batch.gap[i] <= 1e-5
        assert batch.losses[i].shape == (1, 3)
        # One mechanism, two certificates: they differ by what kernels evaluated together may be off, as above.
        assert certify(sets[i], secrets[i], batch[i].mechanism).epsilon == pytest.approx(batch.epsilon[i], rel=1e-9)


def test_bad_traces_are_listed_with_their_reason_and_the_others_go_on(rng):
    priors, secrets = traces(rng, [12, 13, 14])
    broken = np.eye(12)
    broken[3, 3] = np.nan
    listed = [priors[0], broken, priors[1], None, InputError("too still"), priors[2], np.eye(1)]
    wanted = [secrets[0], secrets[0], secrets[1], secrets[0], secrets[0], Secret([14], radius=20.0), secrets[0]]
    batch = design_batch(listed, wanted, epsilon=1.0)
    assert sorted(batch.refusals) == [1, 3, 4, 5, 6]
    assert "not finite" in batch.refusals[1] and "no prior" in batch.refusals[3]
    assert batch.refusals[4] == "too still" and "outside the trace" in batch.refusals[5]
    assert "at least 2" in batch.refusals[6]
    np.testing.assert_array_equal(batch.designed, [True, False, True, False, False, False, False])
    np.testing.assert_array_equal(batch.positions, np.arange(7))
    assert batch.cost[2] == pytest.approx(design(priors[1], secrets[1], epsilon=1.0).cost, rel=1e-8)
    with pytest.raises(InputError, match="trace 4 of the batch was refused: too still"):
        batch[4]
    assert "5 refused" in str(batch)


def test_a_budget_below_the_floor_is_said_for_its_own_trace_only(rng):
    priors, secrets = traces(rng, [12, 12])
    batch = design_batch(priors, secrets, budget=[1.0, 900.0], floor_sd=1.0)
    assert batch.results[0] is DesignResult.budget_infeasible
    assert batch.results[1] is DesignResult.optimal


def test_other_secrets_are_designed_one_by_one(rng):
    priors, _ = traces(rng, [10, 10])
    mean = np.zeros((1, 10))
    mean[0, :3] = 1.0 / 3.0
    secrets = [Secret([4, 5], radius=20.0), LinearSecret(mean, radius=20.0)]
    batch = design_batch(priors, secrets, epsilon=1.0)
    for i in range(2):
        assert batch.cost[i] == design(priors[i], secrets[i], epsilon=1.0).cost


def test_a_stream_is_read_only_as_far_as_needed_and_nothing_is_lost(rng):
    prior, secret = (one[0] for one in traces(rng, [10]))
    read = 0

    def stream():
        nonlocal read
        for k in range(70):
            read += 1
            yield (None if k == 5 else prior, secret)

    limit = 8.5 * 8 * (10 * 16 * 16 + 40 * 16 + 4096)  # room for eight traces of at most 16 points
    before = compilations()
    seen: list[int] = []
    for part in design_batches(stream(), epsilon=1.0, memory_limit=limit):
        seen.extend(part.positions.tolist())
        assert len(part) <= 8
        assert read <= len(seen) + 2
    assert sorted(seen) == list(range(70))
    # One program, at one size, for all chunks, the incomplete one included.
    assert compilations() - before <= 1


def test_a_bucket_is_compiled_once(rng):
    priors, secrets = traces(rng, [10, 11, 12, 13, 14, 15, 16, 9])
    design_batch(priors, secrets, epsilon=1.0)
    before = compilations()
    design_batch(priors[::-1], secrets[::-1], epsilon=2.0)
    assert compilations() == before


def test_buckets_and_chunks():
    assert [bucket_of(n) for n in (2, 16, 17, 50, 51, 200, 201, 300)] == [16, 16, 32, 50, 64, 200, 256, 384]
    assert [prior_bucket(p) for p in (1, 2, 7, 12, 13)] == [1, 3, 12, 12, 24]
    assert chunk_of(200, 12, 2.0**31, 1) * 8 * 12 * 10 * 200**2 <= 2.0**31
    with pytest.raises(InputError, match="memory_limit"):
        chunk_of(200, 12, 1e6, 1)


def test_arguments_that_are_wrong_for_all_are_refused(rng):
    priors, secrets = traces(rng, [10])
    with pytest.raises(InputError, match="exactly one of"):
        design_batch(priors, secrets)
    with pytest.raises(InputError, match="epsilon is -1"):
        design_batch(priors, secrets, epsilon=-1.0)
    with pytest.raises(InputError, match="1 priors and 2 secrets"):
        design_batch(priors, secrets * 2, epsilon=1.0)
    with pytest.raises(InputError, match="2 values for 1"):
        design_batch(priors, secrets, epsilon=[1.0, 2.0])
    with pytest.raises(InputError, match="empty"):
        design_batch([], secrets, epsilon=1.0)
