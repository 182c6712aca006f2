"""What a fit returns: the optimum, its invariances, its bounds and limits, and what it refuses."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy.optimize import minimize

from jaxpriv import InputError
from jaxpriv.fitting import optimum
from jaxpriv.fitting.families import periodic_default
from jaxpriv.fitting.fit import Fit, fit
from jaxpriv.priors.process import ProcessPrior


MATERN = {"sd": 60.0, "lengthscale": 80.0}


@pytest.fixture(scope="module")
def walk(oracle) -> tuple[np.ndarray, np.ndarray]:
    """A Matérn-3/2 trace of 45 points over five minutes with a metre of noise, far from the origin."""
    rng = np.random.default_rng(8)
    times = 1.7e9 + np.sort(rng.choice(np.arange(0.0, 301.0), 45, replace=False))
    return times, 4.4e6 + oracle.draw("matern32", MATERN, 1.0, times, rng)


@pytest.fixture(scope="module")
def fitted(walk) -> Fit:
    found = fit(*walk)
    assert isinstance(found, Fit)
    return found


def profile(oracle, times, values, log_noise: float) -> float:
    """ℓ maximised over sd and lengthscale by Nelder–Mead on the independent likelihood."""

    def cost(x: np.ndarray) -> float:
        sd, length = np.exp(x)
        full = oracle.covariance("matern32", {"sd": sd, "lengthscale": length}, times)
        return -oracle.loglik(full + np.exp(2 * log_noise) * np.eye(times.size), times, values, "constant")

    found = minimize(cost, np.log([50.0, 70.0]), method="Nelder-Mead", options={"xatol": 1e-5, "fatol": 1e-7})
    return -found.fun


def test_the_optimum_and_the_nuggets_limit_are_those_of_an_independent_optimiser(walk, fitted, oracle):
    times, values = walk[0] - walk[0][0], walk[1] - np.mean(walk[1])
    at_fit = profile(oracle, times, values, np.log(fitted.noise_sd))
    # Nelder–Mead stops within 1e-7 nats; 1e-5 leaves room for its simplex and for coordinates of 4.4e6 m.
    assert fitted.loglik == pytest.approx(at_fit, abs=1e-5)
    for shift in (-0.1, 0.1):
        assert profile(oracle, times, values, np.log(fitted.noise_sd) + shift) < at_fit
    assert fitted.noise_sd_lower is not None
    assert 0.03 < fitted.noise_sd_lower < fitted.noise_sd
    # The 95 % one-sided limit: the profile is down by 1.6449²/2 there, to the 1e-3 in √(2Δ) of the search.
    fall = at_fit - profile(oracle, times, values, np.log(fitted.noise_sd_lower))
    assert fall == pytest.approx(1.3528, abs=5e-3)


def test_a_fit_describes_itself(walk, fitted):
    assert fitted.family == "matern32"
    assert fitted.converged
    assert fitted.failed_starts == 0
    assert len(fitted.start_logliks) == 3
    assert fitted.spread < 1e-4
    assert fitted.bound_hits == ()
    assert (fitted.n, fitted.duration) == (45, walk[0][-1] - walk[0][0])
    assert fitted.q == pytest.approx(2 * fitted.sd * (np.sqrt(3) / fitted.lengthscale) ** 1.5)


def test_its_prior_is_the_fitted_process(walk, fitted, oracle):
    prior = fitted.prior(walk[0])
    assert isinstance(prior, ProcessPrior)
    expected = oracle.covariance("matern32", dict(fitted.parameters), walk[0])
    np.testing.assert_allclose(prior.covariance, expected + fitted.noise_sd**2 * np.eye(45), rtol=1e-12)
    assert fitted.prior(walk[0], noise_sd=2.0).nugget == 4.0


@pytest.mark.parametrize(("value_unit", "factor"), [("km", 1e-3), ("m", 1.0)])
def test_units_change_nothing_but_the_units(walk, fitted, value_unit, factor):
    times, values = walk
    found = fit((times - times[0]) / 60.0, values * factor, units=(value_unit, "min"))
    assert isinstance(found, Fit)
    # The optimiser sees the same numbers but for rounding, and stops within 1e-10 nats of the top: parameters to 1e-5.
    assert found.lengthscale * 60.0 == pytest.approx(fitted.lengthscale, rel=1e-5)
    assert found.sd / factor == pytest.approx(fitted.sd, rel=1e-5)
    assert found.noise_sd / factor == pytest.approx(fitted.noise_sd, rel=1e-5)
    assert found.noise_sd_lower / factor == pytest.approx(fitted.noise_sd_lower, rel=1e-3)
    assert found.loglik == pytest.approx(fitted.loglik - 44 * np.log(factor), abs=1e-5)


def test_coordinates_are_fitted_one_by_one(walk, fitted):
    times, values = walk
    both = fit(times, np.stack([values, 3.0 * values], axis=1), noise_floor=1e-3)
    assert isinstance(both, list)
    assert len(both) == 2
    assert both[1].lengthscale == pytest.approx(both[0].lengthscale, rel=1e-5)
    assert both[1].sd == pytest.approx(3.0 * both[0].sd, rel=1e-5)
    assert both[0].lengthscale == pytest.approx(fitted.lengthscale, rel=1e-5)


def test_a_trace_shorter_than_its_length_scale_identifies_the_noise_level_only(oracle):
    times = np.linspace(0.0, 300.0, 45)
    values = oracle.draw("matern32", {"sd": 2000.0, "lengthscale": 900.0}, 0.03, times, np.random.default_rng(3))
    wide = {"sd": (1.0, 1e7)}
    free = fit(times, values, bounds=wide, confidence=None)
    assert isinstance(free, Fit)
    far = fit(times, values, bounds={**wide, "lengthscale": (3.0 * free.lengthscale,) * 2}, confidence=None)
    assert isinstance(far, Fit)
    assert far.sd > 3.0 * free.sd
    assert free.loglik - far.loglik < 1.0
    assert far.q == pytest.approx(free.q, rel=0.1)


def test_bounds_are_kept_and_hits_reported_by_name(walk):
    found = fit(*walk, bounds={"lengthscale": (20.0, 40.0), "noise_sd": (2.0, 5.0)}, confidence=0.9)
    assert isinstance(found, Fit)
    assert found.lengthscale == pytest.approx(40.0, rel=1e-12)
    assert found.bound_hits == ("lengthscale at its upper bound 40 s", "noise_sd at its lower bound 2 m")
    assert found.noise_sd_lower == pytest.approx(2.0, rel=1e-12)


def test_rounded_values_set_the_nuggets_bound(oracle, rng):
    times = np.linspace(0.0, 300.0, 45)
    values = oracle.draw("matern32", MATERN, 1e-3, times, rng)
    found = fit(times, values, quantum=6.0, confidence=None)
    assert isinstance(found, Fit)
    assert found.bound_hits == (f"noise_sd at its lower bound {6.0 / np.sqrt(12.0):.4g} m",)


def test_a_failing_start_is_reported_and_all_failing_is_an_error():
    # Even points on [0, 5] and a unit RBF: singular in double precision without noise.
    times = np.linspace(0.0, 5.0, 35)
    values = np.sin(times)
    good = {"sd": 1.0, "lengthscale": 1.0, "noise_sd": 0.1}
    bad = {"sd": 1.0, "lengthscale": 5.0, "noise_sd": 1e-12}
    options = {"kernel": "rbf", "units": ("1", "s"), "noise_floor": 1e-12, "confidence": None}
    found = fit(times, values, starts=[bad, good], **options)
    assert isinstance(found, Fit)
    assert found.failed_starts == 1
    assert np.isnan(found.start_logliks[0])
    with pytest.raises(InputError, match="could not be computed from any of 1 starting points"):
        fit(times, values, starts=[bad], **options)


def test_a_line_search_steps_back_from_failures():
    class Cliff:
        """A parabola with no value beyond its maximum's far side."""

        def __call__(self, x):
            if x[0] > 2.5:
                return optimum._FAILED, np.zeros(1)
            return float((x[0] - 2.0) ** 2), 2.0 * (x - 2.0)

    run = optimum.climb(Cliff(), np.array([-3.0]), np.array([-10.0]), np.array([10.0]))
    assert run.converged
    assert run.point[0] == pytest.approx(2.0, abs=1e-6)


def test_smooth_traces_fit_both_matern_families(oracle):
    # Draws of an RBF with length scale 6.1 steps and almost no noise: the rough families lengthen, they do not fail.
    times = np.arange(48.0)
    rng = np.random.default_rng(61)
    for _ in range(4):
        values = oracle.draw("rbf", {"sd": 1.0, "lengthscale": 6.1}, 1e-3, times, rng)
        rough, smooth = (
            fit(times, values, kernel=name, units=("1", "s"), noise_floor=1e-3, confidence=None)
            for name in ("matern32", "matern52")
        )
        assert isinstance(rough, Fit)
        assert isinstance(smooth, Fit)
        assert rough.converged
        assert smooth.converged
        assert smooth.loglik > rough.loglik
        assert 6.1 < smooth.lengthscale < rough.lengthscale


def test_a_period_must_be_given(rng):
    with pytest.raises(InputError, match="needs a fixed period"):
        fit(np.arange(48.0), rng.standard_normal(48), kernel="periodic_rbf", units=("K", "h"))


@pytest.mark.slow
def test_a_fixed_period_is_kept(rng):
    times = np.arange(48.0)
    values = np.cos(2 * np.pi * times / 24.0) + 0.1 * rng.standard_normal(48)
    found = fit(times, values, kernel="periodic", period=24.0, units=("K", "h"), confidence=None)
    assert isinstance(found, Fit)
    # A chi-square of some forty degrees of freedom is within a third of its mean.
    assert 0.07 < found.noise_sd < 0.13
    covariance = np.asarray(found.prior(times).covariance)
    assert covariance[0, 24] == pytest.approx(covariance[0, 0] - found.noise_sd**2, rel=1e-9)


def test_the_daily_cycle_gets_a_second_part_from_five_days_on():
    assert periodic_default(119.0, 24.0) == "periodic_rbf"
    assert periodic_default(120.0, 24.0) == "periodic_rbf_matern32"


def test_an_integrated_process_does_not_know_its_start(oracle, rng):
    times = np.linspace(0.0, 300.0, 40)
    values = 1e4 + oracle.draw("matern32", MATERN, 0.5, times, rng)
    found = fit(times, values, kernel="iou", confidence=None)
    assert isinstance(found, Fit)
    covariance = np.asarray(found.prior(times + 1.6e9).covariance)
    assert covariance[0, 0] == pytest.approx(1e4 * found.value_sd**2 + found.noise_sd**2)
    increments = covariance[1:, 1:] - covariance[:1, 1:] - covariance[1:, :1] + covariance[0, 0]
    expected = oracle.covariance("iou", dict(found.parameters), times)[1:, 1:] + found.noise_sd**2 * (1 + np.eye(39))
    # The large start cancels: 1e4 sd² leaves about twelve digits of it.
    np.testing.assert_allclose(increments, expected, rtol=0, atol=1e-10 * covariance[0, 0])
    with pytest.raises(InputError, match="known exactly"):
        fit(times, values, kernel="iou", mean="zero")


TIMES = np.linspace(0.0, 100.0, 25)
VALUES = np.cos(TIMES / 7.0) * 30.0


def changed(array: np.ndarray, position: int, value: float) -> np.ndarray:
    copy = array.copy()
    copy[position] = value
    return copy


@pytest.mark.parametrize(
    ("times", "values", "options", "message"),
    [
        (TIMES[:19], VALUES[:19], {}, "19 points; a prior needs at least 20.*--prior"),
        (TIMES, VALUES * 0.01, {}, "not above 0.5 m.*not degrees.*--prior"),
        (TIMES, VALUES * 1e-5, {"units": ("km", "s")}, "not above 0.0005 km"),
        (TIMES, np.zeros(25), {}, "does not vary"),
        (TIMES, np.full(25, 4.4e6) + 1e-9 * VALUES, {"min_sd": 0.0}, "does not vary"),
        (TIMES, VALUES, {"noise_floor": 40.0}, "nothing but noise"),
        (TIMES, changed(VALUES, 3, np.nan), {}, "values holds values that are not finite"),
        (changed(TIMES, 3, np.inf), VALUES, {}, "times holds values that are not finite"),
        (changed(TIMES, 3, TIMES[2]), VALUES, {}, "twice the same time at position 3"),
        (changed(TIMES, 3, TIMES[1]), VALUES, {}, "before its predecessor at position 3"),
        (np.zeros(4), np.zeros(4), {}, "twice the same time at position 1"),
        (np.array([0.0, 1.0]), np.zeros(2), {}, "2 points; a prior needs"),
        (TIMES, VALUES[:-1], {}, r"values has shape \(24,\) for 25 times"),
        (TIMES, VALUES[None, :, None], {}, "expected 1 or 2 dimension"),
        (TIMES, np.stack([VALUES, 0.0 * VALUES], axis=1), {}, "coordinate 1 of values does not vary"),
        (TIMES, VALUES, {"kernel": "spline"}, "'spline' is not one of matern12, matern32"),
        (TIMES, VALUES, {"mean": "quadratic"}, "'quadratic' is not one of zero, constant, linear"),
        (TIMES, VALUES, {"period": 24.0}, "has no period"),
        (TIMES, VALUES, {"bounds": {"tau": (1, 2)}}, "bounds names 'tau'"),
        (TIMES, VALUES, {"bounds": {"sd": (2, 1)}}, "0 < low <= high"),
        (TIMES, VALUES, {"starts": []}, "starts is empty"),
        (TIMES, VALUES, {"starts": [{"sd": -1.0}]}, r"starts\[0\]\['sd'\] must be a positive number"),
        (TIMES, VALUES, {"starts": [{"speed": 1.0}]}, "names 'speed'"),
        (TIMES, VALUES, {"quantum": -1.0}, "quantum must be"),
        (TIMES, VALUES, {"noise_floor": 0.0}, "noise_floor must be a positive number"),
        (TIMES, VALUES, {"min_sd": np.nan}, "min_sd must be"),
        (TIMES, VALUES, {"confidence": 0.4}, "confidence must be between 0.5 and 1"),
        (np.arange(4000.0), np.cos(np.arange(4000.0)) * 30.0, {"kernel": "rbf"}, "no O\\(n\\) likelihood"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_a_reason(times, values, options, message):
    with pytest.raises(InputError, match=message):
        fit(times, values, **options)


def test_long_traces_take_the_linear_time_path(oracle):
    rng = np.random.default_rng(12)
    times = np.cumsum(rng.uniform(2.0, 8.0, 70))
    values = oracle.draw("matern32", MATERN, 1.0, times, rng)
    found = fit(times, values, confidence=None)
    assert isinstance(found, Fit)
    at_fit = profile(oracle, times, values, np.log(found.noise_sd))
    assert found.loglik == pytest.approx(at_fit, abs=1e-5)


def test_a_fit_is_double_precision_whatever_the_flag(walk, fitted):
    with jax.enable_x64(False):
        found = fit(*walk)
        assert isinstance(found, Fit)
        assert not jax.config.jax_enable_x64
    assert found.parameters == fitted.parameters
