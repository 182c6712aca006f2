"""The study of temperature priors: its own sums of kernels, its windows, scores by direct conditioning, its text."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks.studies import _temperature_fits as fits
from benchmarks.studies.temperature_priors import main, prediction_table, windows_of
from jaxpriv.fitting.families import FAMILIES
from jaxpriv.fitting.fit import covariance_of


DATA = os.environ.get("JAXPRIV_DATA")


def sml_file(folder: Path, rows: int) -> Path:
    """A made-up file in the layout of SML2010: a day's course and a slow drift in column 3."""
    hours = np.arange(rows) / 4
    rng = np.random.default_rng(1)
    drift = np.cumsum(rng.normal(size=rows)) * 0.03
    values = 18 + 2 * np.sin(2 * np.pi * hours / 24) + drift
    start = np.datetime64("2012-03-13T11:45")
    lines = ["#  1:Date 2:Time 3:Dining"]
    for i, value in enumerate(values):
        day, clock = str(start + np.timedelta64(15 * i, "m")).split("T")
        lines.append(f"{'/'.join(reversed(day.split('-')))} {clock} {value:.5f} 0")
    path = folder / "sml.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_two_sums_are_families_only_inside_the_block():
    before = dict(FAMILIES)
    with fits.own_families():
        assert set(FAMILIES) - set(before) == {"periodic_plus_matern32", "periodic_rbf_matern52"}
        times = np.arange(30.0)
        values = fits.standardised(np.sin(2 * np.pi * times / 24) + 0.1 * np.random.default_rng(0).normal(size=30))
        r = np.abs(np.subtract.outer(times, times))
        daily = 1.5**2 * np.exp(-2 * np.sin(np.pi * r / 24) ** 2 / 1.2**2)
        rough, smooth = np.sqrt(3) * r / 7.0, np.sqrt(5) * r / 7.0
        by_hand = {
            "PER + M3/2": daily + 0.25 * (1 + rough) * np.exp(-rough),
            "PER × RBF + M5/2": daily * np.exp(-(r**2) / (2 * 40.0**2))
            + 0.25 * (1 + smooth + smooth**2 / 3) * np.exp(-smooth),
        }
        known = {"sd": 1.5, "periodic_lengthscale": 1.2, "matern_sd": 0.5, "matern_lengthscale": 7.0, "noise_sd": 0.1}
        for kernel, matrix in by_hand.items():
            changes = {**known, "decay": 40.0} if "RBF" in kernel else known
            fit = fits.fitted(values, kernel).with_parameters(changes)
            assert covariance_of(fit, times) == pytest.approx(matrix + 0.01 * np.eye(30), rel=1e-12)
    assert before == FAMILIES


def test_scores_are_those_of_direct_conditioning():
    """A Gaussian with a vague mean, conditioned on the hours that are seen: no formula for leaving out is used."""
    values = np.cumsum(np.random.default_rng(3).normal(size=40))
    found = fits.scored([values], "M3/2", (6,), refit=False)
    z, times = fits.standardised(values), np.arange(40.0)
    assert found.gaps[6][1].prediction.indices.tolist() == list(range(17, 23))
    covariance = covariance_of(found.fits[0], times) + 1e6

    def score(hidden: np.ndarray) -> tuple[float, np.ndarray]:
        seen = np.setdiff1d(np.arange(40), hidden)
        gain = np.linalg.solve(covariance[np.ix_(seen, seen)], covariance[np.ix_(seen, hidden)])
        left = covariance[np.ix_(hidden, hidden)] - covariance[np.ix_(hidden, seen)] @ gain
        error = z[hidden] - gain.T @ z[seen]
        return float(np.mean(norm.logpdf(error, scale=np.sqrt(np.diagonal(left))))), error

    # 1e6 in place of infinity: one part in a million, and as much rounding.
    alone = np.mean([score(np.array([i]))[0] for i in range(40)])
    assert found.leave_one_out[0] == pytest.approx(alone, abs=1e-4)
    for hidden in found.gaps[6]:
        known, error = score(hidden.prediction.indices)
        assert hidden.prediction.log_score == pytest.approx(known, abs=1e-4)
        assert hidden.prediction.errors == pytest.approx(error, abs=1e-4)
    row = prediction_table({"M3/2": found})[-1]
    assert row.count("|") == 7 and f"{found.logliks[0]:.1f}" in row


def test_windows_begin_where_the_published_ones_do(tmp_path):
    eight, two = windows_of(sml_file(tmp_path, 2764))
    assert [len(eight), len(two)] == [3, 8]
    assert {len(window) for window in eight} == {192} and {len(window) for window in two} == {48}
    # Row 800 is hour 200, row 768 the beginning of the second window of eight days.
    assert two[0][:2] == pytest.approx([eight[1][8], eight[1][9]], rel=1e-12)
    with pytest.raises(ValueError, match="992"):
        windows_of(sml_file(tmp_path, 900))


def test_a_file_that_is_too_short_is_an_error_of_the_command(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["--sml2010", str(sml_file(tmp_path, 100)), "--out", str(tmp_path / "out")])
    assert "at least 992" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_whole_study_on_a_made_up_house(tmp_path, capsys):
    assert main(["--sml2010", str(sml_file(tmp_path, 992)), "--quick", "--out", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert (tmp_path / "temperature_priors.md").read_text(encoding="utf-8") == text[:-1]
    cells = [line.split("|") for line in text.splitlines() if line.startswith("|") and " → " in line]
    promised = {row[1].strip(): [float(x) for x in row[2].split(" → ")] for row in cells}
    assert len(promised) == 6
    for name, (own, _, best) in promised.items():
        assert 0.0 < own < 1.0 and 0.0 < best < 1.0, name
    # Gaps of converged designs.
    gap = text.split("Largest duality gap of all designs: ")[1].split("\n")[0].rstrip(".")
    assert float(gap) < 2e-6


@pytest.mark.skipif(DATA is None, reason="JAXPRIV_DATA is not set: the folder of real files")
def test_recorded_windows_are_those_of_the_known_fits():
    """Row 800, restricted likelihood, RBF: computed by an independent library to 1e-4."""
    assert DATA is not None
    _, two = windows_of(Path(DATA) / "sml2010" / "NEW-DATA-1.T15.txt")
    assert fits.fitted(fits.standardised(two[0]), "RBF").loglik == pytest.approx(69.0164, abs=2e-3)
