"""Which priors a design must withstand: given, from files, fitted; against the library and formulas of this file."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.linalg import null_space

from jaxpriv.errors import InputError
from jaxpriv.fitting.fit import Fit, Settings, fit
from jaxpriv.fitting.population import Population
from jaxpriv.fitting.prior_file import write_prior
from jaxpriv.fitting.robust import prior_set
from jaxpriv.jobs import prior_sources as job
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.prior_sources import find_priors, fits_of_trace
from jaxpriv.traces.files import read_trace
from jaxpriv.traces.projection import public_origin


GIVEN = PriorChoice("matern32", 60.0, 300.0, 1.0)
N = 30


def covariance(kernel, sd, length, times):
    lag = np.abs(times[:, None] - times[None, :]) / length
    if kernel == "matern32":
        return sd**2 * (1 + math.sqrt(3) * lag) * np.exp(-math.sqrt(3) * lag)
    return sd**2 * (1 + math.sqrt(5) * lag + 5 * lag**2 / 3) * np.exp(-math.sqrt(5) * lag)


@pytest.fixture(scope="module")
def walk():
    """Seconds (30,) and metres (30, 2) of a made-up walk."""
    rng = np.random.default_rng(5)
    times = np.concatenate([[0.0], np.cumsum(rng.uniform(4.0, 12.0, N - 1))])
    factor = np.linalg.cholesky(covariance("matern32", 90.0, 70.0, times) + 1.5**2 * np.eye(N))
    return times, factor @ rng.standard_normal((N, 2))


@pytest.fixture(scope="module")
def fits(walk):
    """Both families fitted to both coordinates."""
    return fits_of_trace(*walk, ("matern32", "matern52"))


@pytest.fixture
def fitted(walk, fits, monkeypatch):
    monkeypatch.setattr(job, "fits_of_trace", lambda *arguments: fits)
    return find_priors(*walk)


def made_fit(kernel="matern32", sd=90.0, length=70.0, noise=1.5, units=("m", "s"), lower=None, n=40, **others):
    parameters = {"sd": sd, "lengthscale": length, "noise_sd": noise, **others}
    return Fit(Settings(kernel, units=units), parameters, lower, -100.0, (-100.0,), (), True, n, 300.0, sd)


def write(path, prior, provenance="fitted elsewhere"):
    write_prior(path, prior, provenance)
    return path


def test_given_numbers_are_taken_as_they_are(walk):
    source = find_priors(*walk, given=GIVEN)
    assert source.axes[0] is source.axes[1]
    assert source.axes[0].choices == (GIVEN,)
    assert source.axes[0].lattice == (True,)
    assert not source.estimate and not source.findings
    assert source.first_line == "Prior: given by the user, not fitted to this trace."
    assert find_priors(*walk, given=GIVEN, resolution_m=0.6).axes[0].lattice == (False,)


def test_a_fit_to_the_trace_itself_is_an_estimate_and_says_so(fitted):
    assert fitted.estimate
    assert fitted.first_line.startswith("Prior: fitted on the trace itself: an estimate")
    assert "not a guarantee" in fitted.first_line
    assert all(one.source == fitted.source for axis in fitted.axes for one in axis.choices)


def test_the_default_set_is_the_librarys(walk, fits, fitted):
    times, _ = walk
    for i in (0, 1):
        found = prior_set(times, fits=fits[i], resolution=0.5)
        axis = fitted.axes[i]
        assert not isinstance(found, list)
        assert axis.lattice == found.lattice
        for ours, theirs in zip(axis.priors(times), found, strict=True):
            np.testing.assert_array_equal(ours.covariance, theirs.covariance)  # the same floats, built another way
        for kernel in ("matern32", "matern52"):
            members = [one for one in axis.choices if one.kernel == kernel]
            lengths = sorted({one.lengthscale_s for one in members})
            np.testing.assert_allclose(np.array(lengths) / lengths[1], [0.5, 1.0, 2.0], rtol=1e-15)
            assert len({one.sd_m for one in members}) == 1
        assert any(axis.lattice)
        assert all(claims == (one.nugget_m >= 1.0) for one, claims in zip(axis.choices, axis.lattice, strict=True))


def test_the_set_can_be_wider_and_of_one_family(walk, fits):
    wide = find_priors(*walk, kernels=["matern32"], which="wide")
    for i in (0, 1):
        assert {one.kernel for one in wide.axes[i].choices} == {"matern32"}
        lengths = sorted({one.lengthscale_s for one in wide.axes[i].choices})
        np.testing.assert_allclose(lengths, fits[i][0].lengthscale * np.array([0.5, 1.0, 2.0, 4.0]), rtol=1e-12)


def test_the_exact_set_is_the_likelier_family(walk, fits, monkeypatch):
    monkeypatch.setattr(job, "fits_of_trace", lambda *arguments: fits)
    exact = find_priors(*walk, which="exact")
    for axis, pair in zip(exact.axes, fits, strict=True):
        best = max(pair, key=lambda one: one.loglik)
        assert {(one.kernel, one.lengthscale_s, one.sd_m) for one in axis.choices} == {
            (best.family, best.lengthscale, best.sd)
        }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"given": GIVEN, "kernels": ["matern32"]}, "not two of them"),
        ({"given": GIVEN, "which": "default"}, "taken as they are"),
        ({"which": "narrow"}, "no prior set 'narrow'"),
        ({"kernels": ["iou"]}, "'iou' cannot be fitted here"),
        ({"kernels": ["rbf", "rbf"]}, "named twice"),
        ({"sd_m": 300.0}, "alone is no prior"),
    ],
)
def test_options_that_do_not_go_together(walk, options, message):
    with pytest.raises(InputError, match=message):
        find_priors(*walk, **options)


def test_traces_that_cannot_carry_a_fit_are_sent_to_a_file(walk):
    times, metres = walk
    with pytest.raises(InputError, match=r"east coordinate has fewer than 20 fixes.*--prior FILE"):
        find_priors(times[:19], metres[:19])
    still = metres * np.array([1.0, 0.49 / np.std(metres[:, 1])])
    with pytest.raises(InputError, match=r"north coordinate has a standard deviation of 0.5 m or less.*--prior FILE"):
        find_priors(times, still)


def test_a_file_of_another_trace(walk, tmp_path):
    times, metres = walk
    east = [made_fit(lower=1.0), made_fit("matern52", length=50.0, lower=0.9)]
    path = write(tmp_path / "p.json", [east, [made_fit(sd=120.0, lower=0.2)]])
    source = find_priors(times[:12], metres[:12], file=path)  # too short to be fitted itself
    assert not source.estimate
    assert source.first_line == "Prior: read from p.json, fitted elsewhere, to a trace of 40 fixes."
    east_set = [(one.kernel, one.lengthscale_s, one.sd_m, one.nugget_m) for one in source.axes[0].choices]
    assert east_set == [
        ("matern32", 35.0, 90.0, 1.0),
        ("matern32", 70.0, 90.0, 1.0),
        ("matern32", 140.0, 90.0, 1.0),
    ] + [("matern52", length, 90.0, noise) for length in (25.0, 50.0, 100.0) for noise in (0.9, 1.0)]
    assert [one.nugget_m for one in source.axes[1].choices] == [0.2, 1.0] * 3
    assert source.axes[1].lattice == (False, True) * 3
    one = find_priors(times, metres, file=path, kernels=["matern32"], which="exact")
    assert [(p.kernel, p.lengthscale_s) for p in one.axes[0].choices] == [("matern32", 70.0)]


def test_a_file_that_was_fitted_to_this_very_trace_is_found_out(walk, tmp_path):
    times, metres = walk
    fits = fit(times, metres, confidence=None)
    path = write(tmp_path / "p.json", [[one] for one in fits], "fitted elsewhere")
    source = find_priors(times, metres + np.array([1000.0, -500.0]), file=path)  # another origin
    assert source.estimate and "fitted to this very trace" in source.source
    # Without its last fix it is another trace to us; who fits on a part must say so.
    assert not find_priors(times[:-1], metres[:-1], file=path).estimate
    path = write(tmp_path / "q.json", [[one] for one in fits], "fitted on the same data")
    assert find_priors(times[:-1], metres[:-1], file=path).estimate
    path = write(tmp_path / "r.json", [[made_fit()], [made_fit()]], "given")
    assert "not fitted to this trace" in find_priors(times, metres, file=path).source


def test_a_file_that_knows_too_much_of_the_trace_is_reported(walk, tmp_path):
    times, metres = walk
    smooth = [made_fit("rbf", length=150.0, noise=0.05)]
    found = find_priors(times, metres, file=write(tmp_path / "p.json", [smooth, [made_fit()]])).findings
    assert len(found) == 1 and found[0].startswith("east: the 95 % intervals of rbf from p.json cover")


def test_files_that_cannot_be_used(walk, tmp_path):
    times, metres = walk
    fit_of = made_fit
    cases = {
        "coordinate": ([[fit_of()]], {}, "holds 1 coordinate"),
        "units": ([[fit_of(units=("km", "s"))]] * 2, {}, "must be in m and s"),
        "sd": ([[fit_of()]] * 2, {"sd_m": 300.0}, "leave --sd out"),
        "kernel": ([[fit_of()]] * 2, {"kernels": ["matern52"]}, "no fit of 'matern52'; it has matern32"),
        "family": ([[fit_of("rq", alpha=1.0)]] * 2, {}, "cannot be used to protect"),
    }
    for name, (content, options, message) in cases.items():
        path = write(tmp_path / f"{name}.json", content)
        with pytest.raises(InputError, match=f"{name}.json: .*{message}"):
            find_priors(times, metres, file=path, **options)
    with pytest.raises(InputError, match=r"missing\.json"):
        find_priors(times, metres, file=tmp_path / "missing.json")


@pytest.fixture(scope="module")
def population(tmp_path_factory):
    sds, lengths, noises = (5.0, 90.0, 4000.0), (30.0, 80.0, 200.0), (0.05, 0.9, 20.0)
    fits, groups = [], []
    for i, (sd, length, noise) in enumerate(zip(sds, lengths, noises, strict=True)):
        fits += [made_fit("matern32", sd, length, noise), made_fit("matern52", sd, length / 2, noise)]
        groups += [str(i)] * 2
    return write(tmp_path_factory.mktemp("priors") / "people.json", Population(tuple(fits), tuple(groups), {}))


def test_the_middle_of_a_population_is_scaled_to_the_trace(walk, population):
    times, metres = walk
    source = find_priors(times, metres, file=population, resolution_m=0.001)
    assert source.estimate and "the middle of 3 traces" in source.source
    assert "in that one number an estimate, not a guarantee" in source.source
    contrasts = null_space(np.ones((1, N)))
    for i in (0, 1):
        choice = next(
            one for one in source.axes[i].choices if one.kernel == "matern32" and abs(one.lengthscale_s - 80.0) < 1e-9
        )
        unit = covariance("matern32", 1.0, 80.0, times) + 0.01**2 * np.eye(N)  # the median of 0.05/5, 0.9/90, 20/4000
        data = contrasts.T @ metres[:, i]
        profiled = data @ np.linalg.solve(contrasts.T @ unit @ contrasts, data) / (N - 1)
        # The likeliest standard deviation in closed form; condition number 1e5 leaves ten digits.
        assert choice.sd_m == pytest.approx(math.sqrt(profiled), rel=1e-8)
        assert choice.nugget_m == pytest.approx(0.01 * choice.sd_m, rel=1e-12)
        smooth = sorted({one.lengthscale_s for one in source.axes[i].choices if one.kernel == "matern52"})
        np.testing.assert_allclose(smooth, [20.0, 40.0, 80.0], rtol=1e-12)


def test_with_a_given_deviation_nothing_of_the_trace_goes_in(walk, population):
    times, metres = walk
    one, other = (
        find_priors(times, values, file=population, sd_m=250.0, which=which)
        for values, which in ((metres, "exact"), (3.0 * metres[::-1] + 40.0, "exact"))
    )
    assert not one.estimate
    assert "given standard deviation of 250 m" in one.source
    assert one.axes[0].choices == other.axes[0].choices == one.axes[1].choices
    assert {(p.kernel, p.sd_m) for p in one.axes[0].choices} == {("matern32", 250.0)}
    assert one.axes[0].choices[0].lengthscale_s == pytest.approx(80.0, rel=1e-12)
    assert one.axes[0].choices[0].nugget_m == pytest.approx(2.5, rel=1e-12)


def test_a_trace_that_hardly_moves_needs_a_deviation(walk, population):
    times, _ = walk
    still = np.zeros((N, 2))
    with pytest.raises(InputError, match=r"hardly varies.*--sd 300m"):
        find_priors(times, still, file=population)
    assert not find_priors(times, still, file=population, sd_m=300.0).findings
    assert find_priors(times[:2], still[:2], file=population, sd_m=300.0).axes[0].choices
    with pytest.raises(InputError, match="at least two fixes"):
        find_priors(times[:1], still[:1], file=population, sd_m=300.0)


def test_a_population_with_this_trace_in_it_is_found_out(walk, tmp_path):
    times, metres = walk
    own = fit(times, metres[:, 1], confidence=None)
    assert isinstance(own, Fit)
    path = write(tmp_path / "people.json", Population((made_fit(), own), ("a", "b"), {}))
    source = find_priors(times, metres, file=path, sd_m=100.0)
    assert source.estimate
    assert "1 of the 2 traces behind people.json is this very trace; fit it without." in source.findings


def test_a_gap_where_a_window_would_be_hidden(walk):
    times, metres = walk
    late = times + np.where(np.arange(N) < N // 2, 0.0, 4_000.0)
    source = find_priors(late, metres, kernels=["matern32"])
    assert not any("could not be checked" in text for text in source.findings)


def test_the_start_of_a_recorded_trace(real_data):
    trace = read_trace(real_data / "geolife/raw_plt/144/Trajectory/20081213000420.plt")
    plane = public_origin(trace.latitude, trace.longitude)
    metres = trace.mean_by_point(plane.to_metres(trace.latitude, trace.longitude))[:N]
    seconds, steps = trace.seconds[:N], []
    source = find_priors(seconds, metres, kernels=["matern32"], step_m=trace.step_m, progress=steps.append)
    assert len(steps) == 3 and steps[0] == "Fitting matern32 to the east coordinate, 30 fixes"
    for axis in source.axes:
        for prior in axis.priors(seconds):
            assert np.linalg.eigvalsh(np.asarray(prior.covariance))[0] > 0.0
