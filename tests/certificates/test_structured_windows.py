"""Losses from windows of a long trace: against ball arithmetic, the whole trace's bounds, and the design's own."""

from __future__ import annotations

import exact_markov as exact
import flint
import numpy as np
import pytest

import jaxpriv as jp
from jaxpriv import kernels
from jaxpriv.certificates import structured_windows
from jaxpriv.certificates.structured import structured_loss_bounds
from jaxpriv.certificates.structured_windows import column_ends, groups, window_bounds, windowed_loss_bounds
from jaxpriv.priors.quasiseparable import QuasiseparablePrior


@pytest.fixture(autouse=True)
def many_digits():
    previous, flint.ctx.prec = flint.ctx.prec, 300
    yield
    flint.ctx.prec = previous


def short_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structured_windows, "_LEAST", 8)


def columns_on(size: int, spans: list[tuple[int, int]], scales: list[float], rng: np.random.Generator) -> np.ndarray:
    """A factor (n, q): for each span some columns that vanish outside it."""
    parts = []
    for (start, stop), scale in zip(spans, scales, strict=True):
        part = np.zeros((size, 3))
        part[start:stop] = scale * rng.standard_normal((stop - start, 3))
        parts.append(part)
    return np.concatenate(parts, axis=1)


def truth(problem: exact.MarkovProblem, factor: np.ndarray, floor: float) -> flint.arb:
    return exact.true_loss(exact.exact_covariance(problem), problem.secret, factor, floor)


def cases(rng: np.random.Generator):
    """Windows far too short for the prior, so that what the outside adds decides; noise of every size around them."""
    size = 40
    for number in range(12):
        scale, sd, noise_sd = float(rng.uniform(0.5, 3.0)), 20.0, float(rng.uniform(3.0, 20.0))
        times = np.cumsum(rng.uniform(0.2, 2.0, size)) + 1e6 * (number % 4 > 1)
        make, order = [(kernels.matern12, 0), (kernels.matern32, 1), (kernels.matern52, 2)][number % 3]
        secret = [20] if number % 4 else [19, 22]
        problem = exact.MarkovProblem(make(scale, sd), [(sd**2, [(order, scale)])], times, noise_sd, secret)
        spans = [(17, 24), (21, 26), (24, 36), (0, 6)] if number % 2 else [(17, 24), (27, 36), (0, 6)]
        factor = columns_on(size, spans, list(10.0 ** rng.uniform(-2, 2, len(spans))), rng)
        yield problem, QuasiseparablePrior(problem.kernel, times, noise_sd), factor, float(rng.uniform(0.1, 3.0))


def test_the_loss_lies_between_the_bounds_however_short_the_window(rng, monkeypatch):
    short_windows(monkeypatch)
    finite = 0
    for problem, prior, factor, floor in cases(rng):
        true = truth(problem, factor, floor)
        for reach, margin in ((0.0, 0.0), (3.0, 0.0), (3.0, 10.0)):
            found = window_bounds(
                prior, [problem.secret], factor, column_ends(factor), floor, reach, margin, largest=factor.shape[0]
            )
            assert found is not None
            assert flint.arb(found[0].lower) <= true
            finite += np.isfinite(found[0].upper)
            assert np.isinf(found[0].upper) or true <= flint.arb(found[0].upper)
    assert finite >= 18  # of 36: the comparison is of numbers


def test_leaving_out_what_is_outside_is_sometimes_below_the_loss(rng, monkeypatch):
    """The comparison above can fail."""
    short_windows(monkeypatch)
    monkeypatch.setattr(structured_windows, "_leak", lambda prior, start, stop: np.zeros(stop - start))
    wrong = 0
    for problem, prior, factor, floor in cases(rng):
        found = window_bounds(prior, [problem.secret], factor, column_ends(factor), floor, 3.0, 0.0, factor.shape[0])
        assert found is not None
        wrong += not truth(problem, factor, floor) <= flint.arb(found[0].upper)
    assert wrong > 0


def test_noise_beside_a_window_does_not_raise_the_lower_bound(monkeypatch):
    """Large noise on fixes that a chain of overlapping columns leads to: an answer there would count as free of it."""
    short_windows(monkeypatch)
    prior = QuasiseparablePrior(kernels.matern32(20.0, 10.0), np.arange(64.0), 10.0)
    factor = np.zeros((64, 89))
    factor[:16, 0] = 0.01  # the secret's own, which sets the window
    factor[range(16), range(1, 17)] = 0.01
    factor[13, 17:41] = 0.01  # these reach beyond it, each to one fix, where there is other noise
    factor[range(16, 40), range(17, 41)] = 0.01
    factor[range(16, 64), range(41, 89)] = 100.0
    whole = structured_loss_bounds(prior, [(10,)], factor, 1.0)[0]
    found = window_bounds(prior, [(10,)], factor, column_ends(factor), 1.0, 5.0, 400.0, largest=64)
    assert found is not None
    assert found[0].lower <= whole.upper
    assert found[0].upper >= whole.lower


def test_windows_prove_what_the_whole_trace_does(rng):
    size = 5000
    times = np.cumsum(rng.uniform(0.5, 1.5, size))
    prior = QuasiseparablePrior(kernels.matern32(5.0, 20.0) + kernels.matern12(2.0, 3.0), times, 2.0)
    secrets = [(700,), (706, 709), (1500,), (3000,), (4999,)]
    factor = columns_on(size, [(650, 760), (1460, 1540), (2990, 3300)], [3.0, 10.0, 30.0], rng)
    found = windowed_loss_bounds(prior, secrets, factor, 0.5)
    whole = structured_loss_bounds(prior, secrets, factor, 0.5)
    for one, other in zip(found, whole, strict=True):
        assert one.lower <= other.upper
        assert other.lower <= one.upper
        # Looser windows than this are followed by the whole trace.
        assert one.upper <= other.upper * (1 + 2e-9)
        assert one.lower >= other.lower * (1 - 2e-9)


def test_only_windows_are_touched(rng, monkeypatch):
    sizes = []

    def seen(prior, positions, factor, floor):
        sizes.append(factor.shape)
        return structured_loss_bounds(prior, positions, factor, floor)

    monkeypatch.setattr(structured_windows, "structured_loss_bounds", seen)
    size = 5000
    prior = QuasiseparablePrior(kernels.matern32(5.0, 20.0), np.arange(float(size)), 2.0)
    factor = columns_on(size, [(650, 760), (2990, 3300)], [3.0, 30.0], rng)
    windowed_loss_bounds(prior, [(700,), (710,), (3000,), (4500,)], factor, 0.5)
    # Two secrets share their columns, the last one meets none.
    assert len(sizes) == 3
    assert all(rows < 2100 and columns <= 3 for rows, columns in sizes)
    for other, secrets, noise in (
        (prior, [(700,)], factor),  # one secret: its products cover the trace once
        (prior, [(700,), (3000,)], np.concatenate([factor, np.ones((size, 1))], axis=1)),  # noise everywhere
        (QuasiseparablePrior(prior.kernel, prior.times[::-1].copy(), 2.0), [(700,), (3000,)], factor),  # not sorted
        (QuasiseparablePrior(kernels.matern32(4e3, 20.0), prior.times, 2.0), [(700,), (3000,)], factor),  # never fades
    ):
        sizes.clear()
        found = windowed_loss_bounds(other, secrets, noise, 0.5)
        assert [rows for rows, _ in sizes] == [size]
        for one, same in zip(found, structured_loss_bounds(other, secrets, noise, 0.5), strict=True):
            assert one == same


def test_ends_and_groups_of_columns():
    factor = np.zeros((9, 4))
    factor[2:5, 0] = 1.0
    factor[4:8, 1] = 1.0
    factor[8, 3] = 1.0
    ends = column_ends(factor)
    np.testing.assert_array_equal(ends, [[2, 4, 9, 8], [5, 8, 0, 9]])
    found = groups([(3,), (2, 3), (4,), (0,), (1,), (8,)], ends)
    assert sorted(map(sorted, found.values())) == [[0, 1], [2], [3], [4], [5]]


def test_certify_agrees_with_the_design_of_many_secrets():
    prior = QuasiseparablePrior(kernels.matern32(15.0, 20.0), np.arange(4500.0), 1.0)
    secrets = [jp.Secret((int(i),), radius=50.0) for i in (500, 504, 2000, 2150, 4000)]
    design = jp.design(prior, secrets, epsilon=1.0)
    found = jp.certify(prior, secrets, design.mechanism)
    # Both are true bounds of the same number, and the design's are known to about 1e-10.
    assert found.epsilon == pytest.approx(design.epsilon, rel=1e-8)
    np.testing.assert_allclose(found.epsilons, design.certificate.epsilons, rtol=1e-8)
    assert np.all(found.epsilon_lower <= design.certificate.epsilons)
    assert np.all(design.certificate.epsilon_lower <= found.epsilons)
    assert np.all(found.epsilon_lower >= found.epsilons * (1 - 1e-8))
