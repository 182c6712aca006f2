"""The integers against rational arithmetic, the grid, the refusals and the distance from the ideal release."""

from __future__ import annotations

import inspect
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from fixed_bytes import Counted, seeded
from scipy import stats

from jaxpriv.errors import InputError
from jaxpriv.mechanisms.exact_normal import exact_normals
from jaxpriv.mechanisms.exact_rounding import dyadic, exact_grid_integers
from jaxpriv.mechanisms.grid_release import (
    LARGEST_TAU,
    Release,
    SimulatedRelease,
    _release,
    release,
    total_variation,
)


def by_definition(x, factor, floor_sd, draws, exponent) -> list[int]:
    """⌊(X + L ξ + s ζ)/Δ + ½⌋ in rational numbers, straight from the definition."""
    n, q = factor.shape
    z = [Fraction(d, 2**160) for d in draws]
    step = Fraction(2) ** exponent
    out = []
    for i in range(n):
        shared = sum((Fraction(float(factor[i, j])) * z[j] for j in range(q)), Fraction(0))
        total = Fraction(float(x[i])) + shared + Fraction(float(floor_sd)) * z[q + i]
        out.append(math.floor(total / step + Fraction(1, 2)))
    return out


def wild(rng: np.random.Generator, shape, spread: int) -> np.ndarray:
    """Numbers whose exponents spread over ±spread, some zero, some subnormal."""
    values = rng.normal(size=shape) * 2.0 ** rng.integers(-spread, spread + 1, shape)
    values = np.where(rng.random(shape) < 0.1, 0.0, values)
    return np.where(rng.random(shape) < 0.1, rng.integers(-5, 6, shape) * 5e-324, values)


@pytest.mark.parametrize("spread", [0, 20, 300, 1000])
def test_core_equals_rational_arithmetic(spread):
    rng = np.random.default_rng(spread)
    for _ in range(250):
        n, q = int(rng.integers(1, 5)), int(rng.integers(0, 4))
        x, factor = wild(rng, n, spread), wild(rng, (n, q), spread)
        floor_sd = abs(float(wild(rng, 1, spread)[0]))
        draws = exact_normals(n + q, seeded(int(rng.integers(2**32))))
        exponent = int(rng.integers(-spread - 40, spread + 40))
        expected = by_definition(x, factor, floor_sd, draws, exponent)
        assert exact_grid_integers(x, factor, floor_sd, draws, exponent) == expected


def test_release_equals_rational_arithmetic():
    rng = np.random.default_rng(1)
    for seed in range(200):
        n, q = int(rng.integers(1, 5)), int(rng.integers(0, 4))
        x, factor, floor_sd = rng.normal(size=n) * 1e3, rng.normal(size=(n, q)), float(rng.uniform(0.01, 10))
        made = _release(x, factor, floor_sd, resolution=0.0, exponent=None, _bytes=seeded(seed))
        draws = exact_normals(n + q, seeded(seed))
        assert made.exponent == math.floor(math.log2(floor_sd))
        assert made.integers.tolist() == by_definition(x, factor, floor_sd, draws, made.exponent)


def test_halves_go_up_exactly_on_the_boundary():
    """Z = (j + ½) Δ exactly, and one unit of the draws' last place below: no float could tell them apart."""
    half = 1 << 159
    for j in (-3, -1, 0, 1, 7):
        z = j * (1 << 160) + half
        assert exact_grid_integers(np.zeros(1), np.ones((1, 1)), 0.0, [z, 0], 0) == [j + 1]
        assert exact_grid_integers(np.zeros(1), np.ones((1, 1)), 0.0, [z - 1, 0], 0) == [j]
        assert exact_grid_integers(np.array([j + 0.5]), np.zeros((1, 0)), 1.0, [0], 0) == [j + 1]
        assert exact_grid_integers(np.array([j + 0.5]), np.zeros((1, 0)), 1.0, [-1], 0) == [j]
        assert exact_grid_integers(np.array([5e-324 * j]), np.zeros((1, 0)), 5e-324, [half], -1074) == [j + 1]


def test_dyadic_is_exact():
    rng = np.random.default_rng(2)
    values = wild(rng, (7, 3), 1000)
    integers, exponent = dyadic(values)
    assert [Fraction(i) * Fraction(2) ** exponent for i in integers] == [Fraction(v) for v in values.ravel().tolist()]
    assert dyadic(np.zeros(2))[0] == [0, 0]


@pytest.mark.parametrize("floor_sd", [1.0, 0.5, 0.75, 1.9999999999999998, 2.0, 3.0, 1e-3, 1e5, 2.0**-300, 2.0**300])
def test_default_step_is_the_largest_power_of_two_up_to_the_floor(floor_sd):
    made = release(np.zeros(2), np.zeros((2, 1)), floor_sd, resolution=0.0)
    assert Fraction(2) ** made.exponent <= Fraction(floor_sd) < Fraction(2) ** (made.exponent + 1)
    assert made.step == 2.0**made.exponent


def test_nothing_but_the_integers_depends_on_the_trace():
    rng = np.random.default_rng(3)
    traces = [np.zeros(3), np.ones(3), np.full(3, 1e-9), np.full(3, 1e9), -np.full(3, 1e-300)]
    traces += [rng.normal(size=3) * 10.0 ** rng.uniform(-9, 9) for _ in range(195)]
    factor, seen, requests = np.array([[1.0], [0.5], [-2.0]]), set(), set()
    for x in traces:
        source = Counted(9)
        made = _release(x, factor, 0.75, resolution=0.25, exponent=None, _bytes=source)
        stored = pickle.dumps(made)
        assert all(value.tobytes() not in stored and value.tobytes()[::-1] not in stored for value in x if value)
        assert made.integers.dtype == np.int64 and made.values.dtype == np.float64
        assert np.array_equal(made.values, made.integers * 0.5)
        assert not np.any(np.signbit(made.values[made.integers == 0]))
        seen.add((made.exponent, made.tau, made.resolution, made.integers.shape, len(stored), made.step))
        requests.add(tuple(source.requests))  # the sampler's iterations: equal bytes, equal work
    assert len(seen) == len(requests) == 1


def test_outputs_differ_between_calls():
    made = [tuple(release(np.zeros(4), np.ones((4, 1)), 1e6, resolution=0.0, exponent=-3).integers) for _ in range(50)]
    assert len(set(made)) == 50


def test_release_has_no_seed_and_no_source_of_bytes():
    assert list(inspect.signature(release).parameters) == ["x", "factor", "floor_sd", "resolution", "exponent"]


def test_result_is_read_only_and_is_not_a_simulation():
    made = release([1.0, 2.0], [[1.0], [2.0]], 1.0, resolution=0.5)
    with pytest.raises(ValueError):
        made.integers[0] = 3
    with pytest.raises(AttributeError):
        made.tau = 0.0
    simulated = SimulatedRelease(np.zeros(3))
    assert not isinstance(simulated, Release) and not isinstance(made, SimulatedRelease)
    assert "simulated: not private" in repr(simulated) and "simulated" not in repr(made)
    assert set(Release.__slots__) == {"integers", "exponent", "tau", "resolution"}
    again = pickle.loads(pickle.dumps(made))
    assert np.array_equal(again.values, made.values) and again.exponent == made.exponent


def test_values_are_exact_at_the_ends_of_the_range():
    for integer, exponent in [(2**53 - 1, 971), (-(2**53) + 1, -1074), (1, -1074), (0, -1074)]:
        value = float(Release(np.array([integer]), exponent, 0.0, 0.0).values[0])
        assert Fraction(value) == integer * Fraction(2) ** exponent


@pytest.mark.parametrize("integers", [[1.5], [[1]], [], [2**53], [-(2**53)], [True], ["a"]])
def test_release_object_refuses_what_is_not_a_row_of_53_bit_integers(integers):
    with pytest.raises(InputError):
        Release(np.array(integers), 0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"floor_sd": 0.0}, "must be positive"),
        ({"floor_sd": -1.0}, "must be positive"),
        ({"floor_sd": math.nan}, "finite real numbers"),
        ({"floor_sd": math.inf}, "finite real numbers"),
        ({"floor_sd": True}, "finite real numbers"),
        ({"floor_sd": [1.0]}, "finite real numbers"),
        ({"floor_sd": "1"}, "finite real numbers"),
        ({"resolution": -0.1}, "not negative"),
        ({"resolution": None}, "finite real numbers"),
        ({"resolution": math.nextafter(0.5, 1.0)}, "twice the resolution"),
        ({"resolution": 1e308}, "twice the resolution"),
        ({"factor": np.ones(2)}, "factor must be"),
        ({"factor": np.ones((0, 1))}, "factor must be"),
        ({"factor": np.full((2, 1), np.nan)}, "factor must be"),
        ({"factor": np.full((2, 1), 1e9), "floor_sd": 1e-30, "resolution": 0.0}, "not be exact enough"),
        ({"exponent": -60}, "not be exact enough"),
        ({"exponent": 1.0}, "must be an integer"),
        ({"exponent": True}, "must be an integer"),
        ({"exponent": 972}, "outside the range"),
        ({"exponent": -1075}, "outside the range"),
        ({"x": [2.0**60, 0.0]}, "does not fit"),
        ({"x": [2.0**53 + 64, 0.0]}, "does not fit"),
    ],
)
def test_refusals(change, text):
    arguments = {"x": [1.0, 2.0], "factor": np.full((2, 1), 1e-6), "floor_sd": 1.0, "resolution": 0.5} | change
    x, factor, floor_sd = (arguments.pop(name) for name in ("x", "factor", "floor_sd"))
    with pytest.raises(InputError, match=text):
        release(x, factor, floor_sd, **arguments)


def test_twice_the_resolution_is_enough_and_other_dtypes_are_exact():
    release([1.0], [[1.0]], 1.0, resolution=0.5)
    for x in ([1, 2], np.array([1, 2], np.int32), np.array([0.1, 0.2], np.float32), np.array([1, 2], np.uint8)):
        made = _release(x, np.zeros((2, 0)), 1.0, resolution=0.0, exponent=-20, _bytes=seeded(2))
        exact = np.asarray(x).astype(np.float64)
        assert np.array_equal(
            made.integers,
            _release(exact, np.zeros((2, 0)), 1.0, resolution=0.0, exponent=-20, _bytes=seeded(2)).integers,
        )


def test_tau_is_the_bound_of_the_docstring():
    rng = np.random.default_rng(4)
    for _ in range(50):
        n, q = int(rng.integers(1, 30)), int(rng.integers(0, 5))
        factor, floor_sd = rng.normal(size=(n, q)) * 10.0 ** rng.uniform(-3, 3), 10.0 ** rng.uniform(-3, 1)
        exponent = int(rng.integers(-10, 3))
        reach = np.sum(np.abs(factor), axis=1).max(initial=0.0) + floor_sd
        ideal = -(-(n + q) // 2) * 2.0**-68 + n * 2.0**-89 * reach * (
            2.0**-exponent + 1 / (math.sqrt(2 * math.pi) * floor_sd)
        )
        made = release(np.zeros(n), factor, floor_sd, resolution=0.0, exponent=exponent)
        exact = total_variation(factor, floor_sd, exponent)
        assert exact < Fraction(made.tau) <= exact * (1 + Fraction(1, 2**50))  # rounded up
        assert ideal * (1 - 1e-12) <= made.tau <= ideal * 1.003  # 2/5 for 1/√(2π) = 0.39894 costs 0.27 % of one term


def test_tau_limit_is_decided_exactly():
    """2^28 pairs alone reach 2^-40; a few fewer pass, and need the noise to be small beside the grid."""
    with pytest.raises(InputError, match="too long"):
        release([0.0], np.zeros((2**29, 0)), 1.0, resolution=0.0)
    assert total_variation(np.zeros((2**28, 0)), 1.0, 0) < LARGEST_TAU
    # One point with the step at 2^-48 of the noise: 2^-89 (2^48 + 2/5) and the one pair's 2^-68 are below the limit.
    release([0.0], np.zeros((1, 0)), 1.0, resolution=0.0, exponent=-48)
    with pytest.raises(InputError, match="not be exact enough"):
        release([0.0], np.zeros((1, 0)), 1.0, resolution=0.0, exponent=-49)


def test_tau_of_a_long_trace_is_far_below_the_limit():
    """10^6 points on the default grid, the correlated noise 10^3 times the floor."""
    factor = np.full((10**6, 2), 500.0)
    assert total_variation(factor, 1.0, 0) < Fraction(1, 2**48) < LARGEST_TAU / 200


@pytest.mark.parametrize("spread", [0, 3, 60, 1000])
def test_tau_takes_the_largest_row_exactly(spread):
    """Against sums of fractions, with rows that tie but for the order of their terms or one unit in the last place."""
    rng = np.random.default_rng(spread)
    for _ in range(30):
        n, q = int(rng.integers(1, 12)), int(rng.integers(0, 5))
        factor = wild(rng, (n, q), spread)
        factor = np.vstack([factor, factor[:, ::-1], -np.nextafter(factor, rng.choice([-np.inf, np.inf], q)), factor])
        rows = max((sum(map(Fraction, map(abs, row)), Fraction(0)) for row in factor.tolist()), default=Fraction(0))
        bound = -(-(4 * n + q) // 2) * Fraction(1, 2**68) + Fraction(8 * n, 2**90) * (rows + Fraction(0.3)) * (
            Fraction(4) + Fraction(2, 5) / Fraction(0.3)
        )
        assert total_variation(factor, 0.3, -2) == bound


def test_tau_is_not_misled_by_the_rounding_of_row_sums():
    """In float64 the first row adds up to 1 and the second to 1 + 2^-52; exactly, the first is larger."""
    factor = np.array([[1.0, 2.0**-53, 2.0**-53, 2.0**-53], [1.0 + 2.0**-52, 0.0, 0.0, 0.0]])
    assert factor.sum(axis=1).argmax() == 1
    assert total_variation(factor, 1.0, 0) == total_variation(factor[[0, 0]], 1.0, 0)
    assert total_variation(factor, 1.0, 0) > total_variation(factor[[1, 1]], 1.0, 0)


def test_misrounding_bound_against_a_coarse_sampler():
    """The bound 2e(1/Δ + 1/(√(2π) σ)) on the probability that a draw within e of the exact one rounds differently."""
    rng = np.random.default_rng(5)
    for x, sigma, error in [(0.0, 1.0, 0.01), (0.5, 0.3, 0.02), (0.49, 0.05, 0.01), (0.3, 5.0, 0.05)]:
        z = x + sigma * rng.normal(size=200_000)
        moved = z + error * np.sign(np.sin(1e3 * z))  # an arbitrary perturbation of exactly that size
        different = np.mean(np.floor(z + 0.5) != np.floor(moved + 0.5))
        assert different <= 2 * error * (1 + 0.4 / sigma)
        assert different > 0  # the cases do misround


def test_rounding_error_has_the_variance_of_a_uniform_one():
    """E (ρ(Z) - Z)² = Δ²/12 to 1e-8 when σ ≥ Δ, so the output's variance is η + Δ²/12."""
    count = 8_000
    for shift, seed in [(0.5, 7), (1 / 3, 8)]:
        made = _release(
            np.full(count, shift), np.zeros((count, 0)), 1.0, resolution=0.0, exponent=0, _bytes=seeded(seed)
        )
        cells = np.arange(-3, 4)
        counts = [int(np.sum(made.integers == j)) for j in cells[1:-1]]
        counts = [int(np.sum(made.integers <= -3)), *counts, int(np.sum(made.integers >= 3))]
        edges = np.concatenate([[-np.inf], cells[:-1] + 0.5 - shift, [np.inf]])
        expected = count * np.diff(stats.norm.cdf(edges))
        assert stats.chisquare(counts, expected).pvalue > 1e-7
        spread = np.mean((made.values - shift) ** 2) / (1 + 1 / 12) - 1
        assert abs(spread) < 5.4 * math.sqrt(2 / count)  # two-sided 1e-7 for a nearly normal variance ratio
