"""Published and independently computed numbers, to the digits in which they are printed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from jaxpriv import pml


TABLE = json.loads((Path(__file__).parents[1] / "known_answers" / "leakage.json").read_text())
MODEL, DP = TABLE["model"], TABLE["differential"]
PRIOR, MATRIX, NOISE = (np.array(MODEL[name], dtype=float) for name in ("prior", "matrix", "noise"))
CROSS, SIGNAL = PRIOR @ MATRIX.T, MATRIX @ PRIOR @ MATRIX.T
OUTPUT = np.array(MODEL["output"], dtype=float)
# The tables have 12 or 13 significant digits.
DIGITS = {"rtol": 6e-12}


def test_information_correlations_and_posterior():
    np.testing.assert_allclose(pml.mutual_information(PRIOR, CROSS, SIGNAL + NOISE), MODEL["information"], **DIGITS)
    np.testing.assert_allclose(pml.additive_information(SIGNAL, NOISE), MODEL["information"], **DIGITS)
    correlations = pml.canonical_correlations(PRIOR, CROSS, SIGNAL + NOISE)
    np.testing.assert_allclose(correlations, MODEL["correlations"], **DIGITS)
    np.testing.assert_allclose(pml.posterior_covariance(PRIOR, CROSS, SIGNAL + NOISE), MODEL["posterior"], rtol=1e-11)


def test_leakage_of_one_output():
    args = (PRIOR, CROSS, SIGNAL + NOISE)
    np.testing.assert_allclose(pml.pointwise_leakage(OUTPUT, *args), MODEL["leakage"], **DIGITS)
    np.testing.assert_allclose(pml.additive_leakage(OUTPUT, SIGNAL, NOISE), MODEL["leakage"], **DIGITS)
    factored = pml.factored_leakage(OUTPUT, PRIOR, CROSS, np.eye(2), SIGNAL + NOISE)
    np.testing.assert_allclose(factored, MODEL["leakage"], **DIGITS)
    shift = np.array([3.0, -1.0])
    moved = pml.pointwise_leakage(OUTPUT + shift, *args, mean_y=shift)
    np.testing.assert_allclose(moved, MODEL["leakage"], **DIGITS)


def test_rank_deficient_release():
    known = TABLE["rank_deficient"]
    matrix, output = np.array(known["matrix"], dtype=float), np.array(known["output"], dtype=float)
    cross, seen = PRIOR @ matrix.T, matrix @ PRIOR @ matrix.T + np.diag(known["noise_variances"])
    np.testing.assert_allclose(pml.mutual_information(PRIOR, cross, seen), known["information"], **DIGITS)
    np.testing.assert_allclose(pml.pointwise_leakage(output, PRIOR, cross, seen, rank=2), known["leakage"], **DIGITS)
    right = np.array([[1.0, 2, 0], [0, 0, 1]])
    np.testing.assert_allclose(
        pml.factored_leakage(output, PRIOR, PRIOR @ matrix[[0, 2]].T, right, seen), known["leakage"], **DIGITS
    )
    # Counting too many ranks may only raise the leakage.
    assert pml.pointwise_leakage(output, PRIOR, cross, seen) > known["leakage"]


def test_profile():
    for delta, epsilon in MODEL["epsilon"]:
        np.testing.assert_allclose(pml.leakage_epsilon(MODEL["information"], delta, 2), epsilon, **DIGITS)
    for epsilon, delta in MODEL["delta"]:
        np.testing.assert_allclose(pml.leakage_delta(MODEL["information"], epsilon, 2), delta, **DIGITS)
        log = pml.leakage_log_delta(MODEL["information"], epsilon, 2)
        np.testing.assert_allclose(np.exp(log), delta, **DIGITS)


@pytest.mark.parametrize(("rank", "epsilon", "delta", "quantile", "kappa"), TABLE["kappa"])
def test_kappa(rank, epsilon, delta, quantile, kappa):
    np.testing.assert_allclose(pml.chi2_isf(delta, rank), quantile, **DIGITS)
    np.testing.assert_allclose(pml.kappa(epsilon, delta, rank), kappa, **DIGITS)
    np.testing.assert_allclose(pml.information_budget(epsilon, delta, rank), 2 * epsilon - quantile, rtol=1e-10)


def test_differential_privacy():
    for epsilon, sensitivity, delta in DP["delta"]:
        np.testing.assert_allclose(pml.analytic_gaussian_delta(epsilon, sensitivity), delta, **DIGITS)
    for epsilon, delta, sensitivity in DP["sensitivity"]:
        np.testing.assert_allclose(pml.analytic_gaussian_sensitivity(epsilon, delta), sensitivity, **DIGITS)
    true = pml.mahalanobis_sensitivity(MATRIX, NOISE, 1.0)
    np.testing.assert_allclose(true, DP["model_sensitivity"], **DIGITS)
    for epsilon, radius, delta in DP["model_delta"]:
        np.testing.assert_allclose(pml.analytic_gaussian_delta(epsilon, radius * true), delta, **DIGITS)
    epsilon = MODEL["epsilon"][0][1]
    for matrix, name, deltas in (
        (None, "bound_from_leakage", "delta_from_bound"),
        (MATRIX, "bound_from_leakage_and_matrix", "delta_from_bound_and_matrix"),
    ):
        bound = pml.leakage_to_sensitivity(epsilon, 0.05, 2, PRIOR, 1.0, matrix=matrix)
        np.testing.assert_allclose(bound, DP[name], **DIGITS)
        for level, radius, delta in DP[deltas]:
            # The last table has ten digits, and δ varies thirty times as fast as the bound.
            np.testing.assert_allclose(pml.analytic_gaussian_delta(level, radius * bound), delta, rtol=2e-10)
    back = pml.sensitivity_to_leakage(DP["model_sensitivity"], 1.0, PRIOR, 2, 0.05)
    np.testing.assert_allclose(back, DP["leakage_from_sensitivity"], **DIGITS)


def test_unusual_people_fail_far_more_often():
    known = TABLE["conditional_failure"]
    information = known["epsilon"] - 0.5 * float(pml.chi2_isf(known["delta"], 1))
    for deviation, failure, digits in known["by_deviation"]:
        found = float(pml.conditional_failure(information, known["epsilon"], float(deviation)))
        assert abs(found - failure) < digits
    # Its average over the prior is δ.
    points, weights = np.polynomial.hermite_e.hermegauss(120)
    failures = [float(pml.conditional_failure(information, known["epsilon"], one)) for one in points]
    # The integrand has a steep rise at two standard deviations; Gauss's rule of 120 points then errs by about 1e-6.
    np.testing.assert_allclose(np.dot(weights, failures) / np.sqrt(2 * np.pi), known["delta"], atol=1e-5)


def test_zone_of_a_building_has_the_level_it_was_designed_for():
    known = TABLE["building_zone_1"]
    information = pml.additive_information(np.array([[known["variance"]]]), np.array([[known["noise"]]]))
    np.testing.assert_allclose(pml.leakage_epsilon(information, known["delta"], 1), known["epsilon"], **DIGITS)


def test_smallest_levels_in_the_documents_are_rounded_up():
    text = (Path(__file__).parents[2] / "docs" / "leakage.md").read_text(encoding="utf-8")
    lines = [line.strip("| ").split("|") for line in text.splitlines()]
    ranks = next(line for line in lines if line[0].strip() == "l")[1:]
    shown = next(line for line in lines if line[0].strip() == "ε above")[1:]
    for rank, least in zip(ranks, shown, strict=True):
        exact = float(pml.smallest_epsilon(0.05, int(rank.replace(" ", ""))))
        # Three digits, or whole numbers.
        assert exact <= float(least) < exact * 1.01 + 0.01
