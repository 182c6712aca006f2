"""Leave-one-out and hidden windows against prediction from the other points, and the misfit report."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from jaxpriv import InputError
from jaxpriv.fitting.diagnostics import hidden_window, hidden_windows, leave_one_out, pooled
from jaxpriv.fitting.fit import Fit, Settings, fit
from jaxpriv.fitting.misfit import misfit


TRUE = {"sd": 60.0, "lengthscale": 80.0}


@pytest.fixture(scope="module")
def walk(oracle) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(21)
    times = np.sort(rng.choice(np.arange(0.0, 301.0), 45, replace=False))
    return times, 500.0 + oracle.draw("matern32", TRUE, 1.0, times, rng)


@pytest.fixture(scope="module")
def fitted(walk) -> Fit:
    found = fit(*walk, confidence=None)
    assert isinstance(found, Fit)
    return found


def kriging(full, columns, values, hidden):
    """Universal kriging (Cressie 1993, section 3.4): errors and covariance of the hidden points given the others."""
    seen = np.setdiff1d(np.arange(values.size), hidden)
    inverse = np.linalg.inv(full[np.ix_(seen, seen)])
    f, g = columns[seen], columns[hidden]
    gram = np.linalg.inv(f.T @ inverse @ f)
    beta = gram @ f.T @ inverse @ values[seen]
    gain = full[np.ix_(hidden, seen)] @ inverse
    mean = g @ beta + gain @ (values[seen] - f @ beta)
    rest = g - gain @ f
    return values[hidden] - mean, full[np.ix_(hidden, hidden)] - gain @ full[
        np.ix_(seen, hidden)
    ] + rest @ gram @ rest.T


@pytest.mark.parametrize("mean", ["zero", "constant", "linear"])
def test_closed_forms_are_kriging(walk, oracle, mean):
    times, values = walk
    found = Fit(Settings("matern32", mean), {**TRUE, "noise_sd": 1.0}, None, 0.0, (0.0,), (), True, 45, 269.0, 40.0)
    full = oracle.covariance("matern32", TRUE, times) + np.eye(45)
    columns = oracle.means(mean, times)
    loo = leave_one_out(found, times, values)
    for i in (0, 17, 44):
        error, covariance = kriging(full, columns, values, np.array([i]))
        # Two inversions of a matrix of condition number 1e5: ten digits are left, relative to the prior's scale.
        assert loo.errors[i] == pytest.approx(error[0], rel=1e-7, abs=1e-7)
        assert loo.sds[i] ** 2 == pytest.approx(covariance[0, 0], rel=1e-7)
    window = hidden_window(found, times, values, centre=150.0, width=60.0, refit=False).prediction
    assert np.array_equal(window.indices, np.flatnonzero(np.abs(times - 150.0) <= 30.0))
    error, covariance = kriging(full, columns, values, window.indices)
    np.testing.assert_allclose(window.errors, error, rtol=0, atol=1e-7 * np.max(np.abs(error)))
    np.testing.assert_allclose(window.sds**2, np.diagonal(covariance), rtol=1e-7)


def test_windows_are_at_fixes_also_where_there_is_a_gap(walk, fitted):
    times, values = walk
    gapped = times + np.where(np.arange(times.size) >= 20, 3000.0, 0.0)
    windows = hidden_windows(fitted, gapped, values, width=100.0, refit=False)
    assert min(len(window.prediction.indices) for window in windows) >= 1


def test_scores_are_what_they_are_called(walk, fitted):
    loo = leave_one_out(fitted, *walk)
    assert loo.log_score == pytest.approx(np.mean(norm(0.0, loo.sds).logpdf(loo.errors)))
    assert loo.rms == pytest.approx(np.linalg.norm(loo.errors) / np.sqrt(45))
    assert loo.cover(0.95) == np.mean(np.abs(loo.errors) <= 1.959963984540054 * loo.sds)
    tenths = np.minimum(9, np.floor(10 * norm.cdf(loo.z))).astype(int)
    np.testing.assert_allclose(loo.deciles, np.bincount(tenths, minlength=10) / 45)


def test_hidden_windows_are_refitted_without_themselves(walk, fitted):
    times, values = walk
    windows = hidden_windows(fitted, times, values, positions=3)
    assert [len(window.prediction.indices) for window in windows] == [
        int(np.sum(np.abs(times - centre) <= 0.1 * (times[-1] - times[0])))
        for centre in times[[45 // 4, 90 // 4, 135 // 4]]
    ]
    shifted = values.copy()
    shifted[windows[1].prediction.indices] += 40.0
    again = hidden_windows(fitted, times, shifted, positions=3)[1]
    # What is hidden reaches neither the parameters nor the prediction: only the errors move, by what was added.
    assert again.fit.parameters == windows[1].fit.parameters
    np.testing.assert_allclose(again.prediction.errors, windows[1].prediction.errors + 40.0, atol=1e-6)
    assert pooled(windows).errors.size == sum(window.prediction.errors.size for window in windows)


def test_a_trace_still_outside_the_window_keeps_its_parameters():
    times = np.arange(45.0)
    values = np.zeros(45)
    values[20:25] = 100.0 * np.array([1.0, -2.0, 3.0, -1.0, 0.5])
    found = fit(times, values, confidence=None)
    assert isinstance(found, Fit)
    window = hidden_window(found, times, values, centre=22.0, width=4.0)
    assert window.fit is found
    assert np.all(np.isfinite(window.prediction.z))


def test_a_kernel_that_is_too_smooth_is_flagged(oracle):
    times = np.arange(45.0) * 7.0
    values = oracle.draw("matern32", {"sd": 200.0, "lengthscale": 300.0}, 0.05, times, np.random.default_rng(4))
    smooth, right = (fit(times, values, kernel=name, confidence=None) for name in ("rbf", "matern32"))
    assert isinstance(smooth, Fit)
    assert isinstance(right, Fit)
    report = misfit(smooth, times, values, alternatives=("matern32", "rbf"))
    assert dict(report.gain) == {"matern32": pytest.approx(smooth.loglik - right.loglik)}
    assert report.best == "matern32"
    assert report.largest_z == np.max(np.abs(report.loo.z))
    # Leave-one-out sees nothing wrong; the hidden windows do.
    assert report.loo.cover(0.95) > 0.9
    text = " ".join(report.flags)
    assert "it claims to know more than it does" in text
    assert "matern32 explains the data better than rbf" in text
    assert "rbf is far too smooth for recorded positions" in text
    own = misfit(right, times, values, alternatives=("rbf",))
    assert own.best == "matern32"
    assert "explains" not in " ".join(own.flags)
    assert "claims to know" not in " ".join(own.flags)
    assert own.hidden.log_score > report.hidden.log_score


def test_flags_name_bounds_starts_and_long_scales(walk, fitted):
    times, values = walk
    doubtful = fitted.with_parameters({"lengthscale": 5e3})
    doubtful = type(doubtful)(
        **{
            **doubtful.__dict__,
            "bound_hits": ("noise_sd at its lower bound 0.03 m",),
            "start_logliks": (doubtful.loglik, doubtful.loglik - 2.0, float("nan")),
            "converged": False,
        }
    )
    flags = misfit(doubtful, times, values, alternatives=(), positions=1).flags
    text = " ".join(flags)
    for part in (
        "lengthscale = 5000 s exceeds the trace's",
        "noise_sd at its lower bound 0.03 m.",
        "1 of 3 starts failed",
        "different optima, up to 2.00 nats apart",
        "stopped before the gradient vanished",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"centre": 1e6, "width": 1.0}, "hides 0 of 45 points"),
        ({"centre": 150.0, "width": 290.0}, "it must hide at least one and leave 10"),
    ],
)
def test_windows_that_hide_nothing_or_all_are_refused(walk, fitted, options, message):
    with pytest.raises(InputError, match=message):
        hidden_window(fitted, *walk, **options)


def test_bad_requests_are_refused(walk, fitted):
    times, values = walk
    with pytest.raises(InputError, match="positions must be at least 1"):
        hidden_windows(fitted, times, values, positions=0)
    with pytest.raises(InputError, match="width must be between 0 and the duration"):
        hidden_windows(fitted, times, values, width=1e4)
    with pytest.raises(InputError, match="one coordinate at a time"):
        leave_one_out(fitted, times, np.stack([values, values], axis=1))
    with pytest.raises(InputError, match="singular to working precision"):
        leave_one_out(fitted.with_parameters({"noise_sd": 1e-12, "lengthscale": 1e9}), times, values)
    with pytest.raises(InputError, match="is periodic"):
        misfit(fitted, times, values, alternatives=("periodic",), positions=1)
