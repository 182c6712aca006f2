"""Mixtures of fitted vectors, and the file they are kept in."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from jaxpriv import InputError
from jaxpriv.fitting.fit import Fit, Settings, fit
from jaxpriv.fitting.population import Population, fit_population
from jaxpriv.fitting.prior_file import read_prior, write_prior
from jaxpriv.fitting.robust import prior_set


TIMES = np.arange(0.0, 225.0, 5.0)


def made(sd: float, lengthscale: float, noise_sd: float, kernel: str = "matern32") -> Fit:
    parameters = {"sd": sd, "lengthscale": lengthscale, "noise_sd": noise_sd}
    return Fit(Settings(kernel), parameters, None, -1.0, (-1.0, float("nan")), ("a bound",), True, 45, 220.0, 40.0)


PEOPLE = Population(
    (made(10.0, 20.0, 0.1), made(20.0, 80.0, 0.2), made(40.0, 40.0, 0.4), made(80.0, 160.0, 0.8)),
    ("anna", "anna", "ben", "ben"),
    {"too still": 2},
)


def test_medians_and_spreads():
    spread = PEOPLE.spread("matern32")
    assert spread["lengthscale"].median == pytest.approx(np.sqrt(40.0 * 80.0))
    logs = np.log([20.0, 80.0, 40.0, 160.0])
    assert spread["lengthscale"].total == pytest.approx(np.std(logs, ddof=1))
    # Two people with two traces each: deviations ±log 2 from each own mean, two degrees of freedom.
    assert spread["lengthscale"].within == pytest.approx(np.sqrt(4 * np.log(2.0) ** 2 / 2))
    assert spread["lengthscale"].between == pytest.approx(np.std([np.log(40.0), np.log(80.0)], ddof=1))
    assert spread["q"].median == pytest.approx(np.exp(np.median([np.log(one.q) for one in PEOPLE.fits])))
    alone = Population((made(1.0, 2.0, 0.1),), ("anna",), {}).spread("matern32")["sd"]
    assert (alone.total, alone.within, alone.between) == (0.0, None, None)


def test_weights_are_the_likelihood_of_what_is_seen(oracle, rng):
    values = 300.0 + oracle.draw("matern32", {"sd": 40.0, "lengthscale": 40.0}, 0.4, TIMES, rng)
    factor = rng.standard_normal((45, 2))
    noise = factor @ factor.T + 2.0 * np.eye(45)
    for added in (None, noise):
        seen = values if added is None else values + np.linalg.cholesky(noise) @ rng.standard_normal(45)
        logs = np.array(
            [
                oracle.loglik(
                    oracle.covariance("matern32", dict(one.parameters), TIMES)
                    + one.noise_sd**2 * np.eye(45)
                    + (0.0 if added is None else added),
                    TIMES,
                    seen,
                    "constant",
                )
                for one in PEOPLE.fits
            ]
        )
        expected = np.exp(logs - np.max(logs))
        # Log-likelihoods of some hundred nats to 1e-11.
        np.testing.assert_allclose(
            PEOPLE.weights(TIMES, seen, added), expected / np.sum(expected), rtol=1e-7, atol=1e-12
        )


def test_a_centre_has_its_standard_deviation_profiled_on_the_trace(oracle, rng):
    values = oracle.draw("matern32", {"sd": 25.0, "lengthscale": 60.0}, 0.25, TIMES, rng)
    centre = PEOPLE.centre("matern32", TIMES, values)
    assert centre.lengthscale == pytest.approx(np.sqrt(40.0 * 80.0))
    assert centre.noise_sd / centre.sd == pytest.approx(0.01)

    def at(sd: float) -> float:
        full = oracle.covariance("matern32", {"sd": sd, "lengthscale": centre.lengthscale}, TIMES)
        return oracle.loglik(full + (0.01 * sd) ** 2 * np.eye(45), TIMES, values, "constant")

    assert centre.loglik == pytest.approx(at(centre.sd), rel=1e-9)
    assert at(centre.sd) > max(at(0.99 * centre.sd), at(1.01 * centre.sd))
    assert len(prior_set(TIMES, fits=centre)) == 3
    assert len(PEOPLE.priors(TIMES)) == 4


def test_fitting_a_population_skips_what_cannot_be_fitted(oracle, rng):
    good = oracle.draw("matern32", {"sd": 40.0, "lengthscale": 60.0}, 0.5, TIMES, rng)
    traces = [
        (TIMES, np.stack([good, good * 1e-3], axis=1)),
        (TIMES[:10], good[:10]),
        (TIMES, np.where(TIMES == 50.0, np.nan, good)),
        (TIMES[::-1], good),
        (TIMES, 0.0 * good),
    ]
    found = fit_population(traces, groups=["anna", "ben", "cem", "dan", "eve"], kernels=("matern32",))
    assert found.groups == ("anna",)
    own = fit(TIMES, good, confidence=None)
    assert isinstance(own, Fit)
    assert found.fits[0].parameters == own.parameters
    assert found.skipped == {
        "too still": 1, "fewer than 20 points": 1, "values not finite": 1, "times not increasing": 1, "no variation": 1,
    }  # fmt: skip
    with pytest.raises(InputError, match="'spline' is not one of"):
        fit_population(traces, kernels=("spline",))
    with pytest.raises(InputError, match="at least one fit; every trace was refused"):
        fit_population(traces[1:])
    with pytest.raises(InputError, match="2 groups for 5 traces"):
        fit_population(traces, groups=["a", "b"])


def test_bad_requests_are_refused():
    values = np.cos(TIMES)
    for message, call in (
        ("no fit of 'rbf'", lambda: PEOPLE.centre("rbf", TIMES, values)),
        ("no population centre", lambda: PEOPLE.centre("periodic", TIMES, values)),
        ("one coordinate at a time", lambda: PEOPLE.centre("matern32", TIMES, values[:, None])),
        ("one coordinate at a time", lambda: PEOPLE.weights(TIMES, values[:, None])),
        (r"noise has shape \(2, 2\)", lambda: PEOPLE.weights(TIMES, values, np.eye(2))),
        ("do not vary", lambda: PEOPLE.centre("matern32", TIMES, 0.0 * values)),
        ("1 groups for 4 fits", lambda: Population(PEOPLE.fits, ("anna",), {})),
        ("share their units", lambda: Population((PEOPLE.fits[0], fit_in_km()), ("a", "b"), {})),
    ):
        with pytest.raises(InputError, match=message):
            call()


def fit_in_km() -> Fit:
    one = made(1.0, 2.0, 0.1)
    return Fit(**{**one.__dict__, "settings": Settings("matern32", units=("km", "s"))})


@pytest.mark.parametrize(
    "prior", [PEOPLE, ((made(1.0, 2.0, 0.1), made(3.0, 4.0, 0.2, "matern52")), (made(5.0, 6.0, 0.3),))]
)
def test_a_file_returns_what_was_written(prior, tmp_path):
    path = tmp_path / "prior.json"
    path.write_text("something older")
    write_prior(path, prior, "fitted elsewhere")
    back = read_prior(path)
    assert back.provenance == "fitted elsewhere"
    assert back.units == ("m", "s")
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["prior.json"]
    if isinstance(prior, Population):
        assert back.coordinates is None
        assert back.population is not None
        written, read = prior.fits, back.population.fits
        assert back.population.groups == prior.groups
        assert back.population.skipped == prior.skipped
    else:
        assert back.population is None
        assert back.coordinates is not None
        written, read = [one for axis in prior for one in axis], [one for axis in back.coordinates for one in axis]
        assert [len(axis) for axis in back.coordinates] == [2, 1]
    for one, other in zip(written, read, strict=True):
        assert other.settings == one.settings
        assert other.parameters == one.parameters
        assert list(other.parameters) == list(one.parameters)
        assert np.array_equal(other.start_logliks, one.start_logliks, equal_nan=True)
        assert (other.loglik, other.bound_hits, other.converged, other.n) == (
            one.loglik, one.bound_hits, one.converged, one.n,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("format",), "other", 'not a prior file: "format"'),
        (("version",), 2, "version 2; this jaxpriv reads version 1"),
        (("kind",), "crowd", "\"kind\" is 'crowd'"),
        (("provenance",), "guessed", "\"provenance\" is 'guessed'"),
        (("surprise",), 1, "entries that are not known: surprise"),
        (("mean",), "cubic", r"coordinates\[0\]\[0\]: mean 'cubic'"),
        (("period",), 24.0, "has no period"),
        (("noise_floor",), -1.0, "noise_floor is -1.0"),
        (("coordinates",), [], "coordinates must be a list with at least one"),
        (("coordinates", 0), [], r"coordinates\[0\] must be a list with at least one"),
        (("coordinates", 0, 0), 3, r"coordinates\[0\]\[0\] is not an object"),
        (("coordinates", 0, 0, "kernel"), "spline", "'spline' is not one of"),
        (("coordinates", 0, 0, "parameters", "sd"), -1.0, r"coordinates\[0\]\[0\].parameters.sd is -1.0"),
        (("coordinates", 0, 0, "parameters", "sd"), True, "expected a finite number"),
        (("coordinates", 0, 0, "parameters", "tau"), 1.0, "entries that are not known: tau"),
        (("coordinates", 0, 0, "loglik"), "high", "expected a finite number"),
        (("coordinates", 0, 0, "converged"), 1, "converged must be true or false"),
        (("coordinates", 0, 0, "bound_hits"), [1], "bound_hits is 1; expected a text"),
    ],
)
def test_a_damaged_file_is_refused_with_its_place(tmp_path, path, value, message):
    file = tmp_path / "prior.json"
    write_prior(file, ((made(1.0, 2.0, 0.1),),), "given")
    content = json.loads(file.read_text())
    place = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    file.write_text(json.dumps(content))
    with pytest.raises(InputError, match=message) as caught:
        read_prior(file)
    assert str(caught.value).startswith("prior.json: ")


def test_what_is_no_prior_file_is_refused(tmp_path):
    file = tmp_path / "prior.json"
    with pytest.raises(InputError, match="cannot be read"):
        read_prior(file)
    for text, message in (
        ("{", "not a JSON file"),
        ("[1]", "not a prior file"),
        ('{"format": NaN}', "not a JSON number"),
        ("[" * 100_000, "not a JSON file"),
    ):
        file.write_text(text)
        with pytest.raises(InputError, match=message):
            read_prior(file)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not a JSON file"):
        read_prior(file)
    write_prior(file, ((made(1.0, 2.0, 0.1),),), "given")
    content = json.loads(file.read_text())
    del content["coordinates"][0][0]["n"]
    file.write_text(json.dumps(content))
    with pytest.raises(InputError, match="lacks n"):
        read_prior(file)


def test_nothing_half_written_is_left(tmp_path):
    file = tmp_path / "prior.json"
    with pytest.raises(InputError, match="provenance 'guessed'"):
        write_prior(file, PEOPLE, "guessed")
    with pytest.raises(InputError, match="no fit to write"):
        write_prior(file, ((made(1.0, 2.0, 0.1),), ()), "given")
    with pytest.raises(InputError, match="must share"):
        write_prior(file, ((made(1.0, 2.0, 0.1), fit_in_km()),), "given")
    with pytest.raises(InputError, match="not finite"):
        write_prior(file, ((made(float("inf"), 2.0, 0.1),),), "given")
    with pytest.raises(InputError, match="cannot be written"):
        write_prior(tmp_path / "missing" / "prior.json", PEOPLE, "given")
    assert list(tmp_path.iterdir()) == []
