"""Fits of public research traces and of an indoor temperature against values computed elsewhere."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from jaxpriv.fitting.diagnostics import hidden_window, leave_one_out
from jaxpriv.fitting.fit import Fit, fit


KNOWN = json.loads((Path(__file__).parents[1] / "known_answers" / "fits.json").read_text(encoding="utf-8"))
WINDOWS, TEMPERATURE = KNOWN["windows"], KNOWN["temperature"]
EARTH = 6371008.8
CONSTANT_FITS = {(row[0], row[2]): row for row in WINDOWS["fits"] if row[3] == "constant"}


def agrees(value: float, printed: str) -> bool:
    """Within 1.5 units of the last printed digit: half for the printing, one for where two optimisers stop."""
    decimals = len(printed.split(".")[1]) if "." in printed else 0
    return abs(value - float(printed)) <= 1.5 * 10.0**-decimals


@pytest.fixture(scope="module")
def windows(real_data: Path) -> dict[str, dict[str, np.ndarray]]:
    wanted = {row[0] for row in WINDOWS["fits"]}
    rows: dict[str, list[tuple[float, float, float]]] = {name: [] for name in wanted}
    with gzip.open(real_data / WINDOWS["file"], "rt") as file:
        for row in csv.DictReader(file):
            if row["trace_id"] in wanted:
                rows[row["trace_id"]].append((float(row["utc_epoch_s"]), float(row["lat"]), float(row["lon"])))
    found = {}
    for name, points in rows.items():
        times, latitude, longitude = np.array(points).T
        latitude, longitude = np.radians(latitude), np.radians(longitude)
        east, north = EARTH * np.cos(np.mean(latitude)) * longitude, EARTH * latitude
        found[name] = {"times": times, "E": east - np.mean(east), "N": north - np.mean(north)}
    return found


@pytest.fixture(scope="module")
def temperature(real_data: Path) -> list[list[str]]:
    lines = (real_data / TEMPERATURE["file"]).read_text(encoding="utf-8").splitlines()
    return [line.split() for line in lines[1:]]


def hourly(rows: list[list[str]], first: int, last: int, field: int) -> tuple[np.ndarray, np.ndarray]:
    values = np.array([float(rows[i][field - 1]) for i in range(first, last + 1, 4)])
    return np.arange(values.size, dtype=float), (values - np.mean(values)) / np.std(values)


def unless_slow(row: list):
    """One of the temperature fits; those whose kernel compiles for one test only are left to the full run."""
    slow = row[3] == "periodic_matern12" or (row[3] == "periodic_rbf" and isinstance(row[4], list))
    return pytest.param(row, id="-".join(map(str, row[:4])), marks=[pytest.mark.slow] * slow)


@pytest.mark.parametrize("row", WINDOWS["fits"], ids=lambda row: "-".join(row[:4]))
def test_windows(windows, row):
    trace, axis, kernel, mean, *printed = row
    found = fit(
        windows[trace]["times"], windows[trace][axis], kernel=kernel, mean=mean, noise_floor=WINDOWS["noise_floor"],
        confidence=None,
    )  # fmt: skip
    assert isinstance(found, Fit)
    assert found.converged
    values = [*found.parameters.values(), found.loglik]
    assert all(agrees(value, text) for value, text in zip(values, printed, strict=True)), (values, printed)
    assert (found.bound_hits == ("noise_sd at its lower bound 0.02 m",)) == (printed[2] == ".02")


@pytest.mark.parametrize("row", WINDOWS["standardised"], ids=lambda row: "-".join(map(str, row[:3])))
def test_standardised_windows(windows, row):
    trace, kernel, noise_variance, *printed = row
    values = windows[trace]["E"] / np.std(windows[trace]["E"])
    bounds = {"sd": (1.0, 1.0)}
    if noise_variance is not None:
        bounds["noise_sd"] = (np.sqrt(noise_variance),) * 2
    found = fit(
        windows[trace]["times"], values, kernel=kernel, mean="zero", bounds=bounds, units=("1", "s"), confidence=None
    )
    assert isinstance(found, Fit)
    computed = (found.lengthscale, found.noise_sd, found.loglik)
    checked = [(value, text) for value, text in zip(computed, printed, strict=True) if text is not None]
    assert all(agrees(value, text) for value, text in checked), checked


@pytest.mark.parametrize("row", WINDOWS["predictions"], ids=lambda row: "-".join(row[:2]))
def test_leave_one_out_and_hidden_window(windows, row):
    trace, kernel, loo_score, loo_rms, first, last, score, rms = row
    times, values = windows[trace]["times"], windows[trace]["E"]
    found = fit(times, values, kernel=kernel, noise_floor=WINDOWS["noise_floor"], confidence=None)
    assert isinstance(found, Fit)
    # The published values were computed from the printed parameters.
    printed = CONSTANT_FITS[trace, kernel][4:7]
    found = found.with_parameters(dict(zip(found.parameters, map(float, printed), strict=True)))
    loo = leave_one_out(found, times, values)
    duration = times[-1] - times[0]
    hidden = hidden_window(
        found, times, values, centre=times[0] + 0.5 * duration, width=0.2 * duration, refit=False
    ).prediction
    assert (hidden.indices[0], hidden.indices[-1]) == (first, last)
    assert agrees(loo.log_score, loo_score)
    assert agrees(loo.rms, loo_rms)
    assert agrees(hidden.log_score, score)
    assert agrees(hidden.rms, rms)


@pytest.mark.parametrize("row", [unless_slow(row) for row in TEMPERATURE["fixed_fits"]])
def test_temperature_with_fixed_noise(temperature, row):
    first, last, field, kernel, lengthscale, decay, loglik = row
    times, values = hourly(temperature, first, last, field)
    noise = float(np.sqrt(0.1))
    found = fit(
        times, values, kernel=kernel, mean="zero", period=TEMPERATURE["period"], units=("sd", "h"),
        bounds={"sd": (1.0, 1.0), "noise_sd": (noise, noise)}, confidence=None,
    )  # fmt: skip
    assert isinstance(found, Fit)
    assert agrees(found.parameters["periodic_lengthscale"], lengthscale)
    assert decay is None or agrees(found.parameters["decay"], decay)
    assert agrees(found.loglik, loglik)


@pytest.mark.parametrize("row", [unless_slow(row) for row in TEMPERATURE["free_fits"]])
def test_temperature_free(temperature, row):
    first, last, field, kernel, parameters, loglik = row
    times, values = hourly(temperature, first, last, field)
    period = TEMPERATURE["period"] if kernel.startswith("periodic") else None
    found = fit(times, values, kernel=kernel, period=period, units=("sd", "h"), confidence=None)
    assert isinstance(found, Fit)
    assert all(agrees(v, text) for v, text in zip(found.parameters.values(), parameters, strict=True)), found.parameters
    assert agrees(found.loglik, loglik)
