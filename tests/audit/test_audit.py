"""One mechanism under every notion: the rows against the single verbs and formulas."""

from __future__ import annotations

import json
import math

import jax
import numpy as np
import pytest
from scipy.stats import chi2

import jaxpriv as jp
from jaxpriv.designs.audit.verb import audit


N = 6
PRIOR = jp.ProcessPrior(jp.kernels.matern32(3.0, 2.0), np.arange(float(N)), 0.3)
MECHANISM = jp.GaussianMechanism(np.random.default_rng(31).standard_normal((N, 3)), 0.5)
SECRETS = [jp.Secret([2], 1.0), jp.Secret([0, 4], 0.5)]
DELTA = 0.03


@pytest.fixture(scope="module")
def full():
    return audit(PRIOR, MECHANISM, secrets=SECRETS, sensitivity=0.8, delta=DELTA, order=3.0)


def _value(found, notion, subject=""):
    (row,) = found.of(notion, subject)
    return row.value


def test_rows_are_those_of_the_single_verbs(full):
    certificate = jp.certify(PRIOR, SECRETS, MECHANISM, 3.0)
    noise, covariance = np.asarray(MECHANISM.covariance), np.asarray(PRIOR.covariance)
    posterior = covariance - covariance @ np.linalg.solve(covariance + noise, covariance)
    for j, secret in enumerate(SECRETS):
        name = f"secret {j}"
        assert _value(full, "conditional inferential privacy", name) == certificate.epsilons[j, 0]
        curve = jp.gaussian_epsilon(float(certificate.epsilons[j, 0]) * 2 / 3, DELTA)
        np.testing.assert_allclose(_value(full, "(ε, 0.03) curve", name), curve, rtol=1e-8)
        inside = list(secret.indices)
        left = np.linalg.slogdet(posterior[np.ix_(inside, inside)])[1]
        information = 0.5 * (np.linalg.slogdet(covariance[np.ix_(inside, inside)])[1] - left)
        np.testing.assert_allclose(_value(full, "mutual information", name), information, rtol=1e-8)
        level = information + chi2.isf(DELTA, secret.size) / 2
        np.testing.assert_allclose(_value(full, "pointwise maximal leakage", name), level, rtol=1e-8)
        assert _value(full, "pointwise maximal leakage", name) >= float(level) * (1 - 1e-12)
    known = _value(full, "attacker's standard deviation", "secret 0")
    np.testing.assert_allclose(known, math.sqrt(posterior[2, 2]), rtol=1e-8)
    assert known <= math.sqrt(posterior[2, 2]) * (1 + 1e-12)
    pair = np.linalg.eigvalsh(posterior[np.ix_([0, 4], [0, 4])])[0]
    assert _value(full, "attacker's standard deviation", "secret 1") <= math.sqrt(pair)
    whole = 0.5 * np.linalg.slogdet(np.eye(N) + np.linalg.solve(noise, covariance))[1]
    np.testing.assert_allclose(_value(full, "mutual information", "the whole"), whole, rtol=1e-8)
    np.testing.assert_allclose(_value(full, "attacker's", "the whole"), math.sqrt(np.trace(posterior) / N), rtol=1e-9)


def test_differential_privacy_of_the_sensitivity(full):
    mu = 0.8 / math.sqrt(np.linalg.eigvalsh(np.asarray(MECHANISM.covariance))[0])
    expected = {
        "Rényi": 1.5 * mu**2,
        "zero-concentrated": mu**2 / 2,
        "Gaussian differential": mu,
        "(ε, 0.03)-differential": float(jp.gaussian_epsilon(mu**2, DELTA)),
    }
    for notion, value in expected.items():
        found = _value(full, notion, "changes")
        np.testing.assert_allclose(found, value, rtol=1e-9)
        assert found >= value * (1 - 1e-12)


def test_an_ellipsoid_and_a_requirement_say_the_same():
    shape = np.random.default_rng(32).standard_normal((N, 2))
    plain = audit(None, MECHANISM, sensitivity=shape)
    wrapped = audit(None, MECHANISM, sensitivity=jp.SensitivityEllipsoid(shape, mu=1.0))
    assert _value(plain, "Gaussian") == _value(wrapped, "Gaussian")
    gram = shape.T @ np.linalg.solve(np.asarray(MECHANISM.covariance), shape)
    np.testing.assert_allclose(_value(plain, "Gaussian"), math.sqrt(np.linalg.eigvalsh(gram)[-1]), rtol=1e-9)


def test_a_covariance_is_audited_like_its_mechanism(full):
    matrix = np.asarray(MECHANISM.covariance)
    found = audit(PRIOR, matrix, secrets=SECRETS, sensitivity=0.8, delta=DELTA, order=3.0)
    for one, other in zip(full.rows, found.rows, strict=True):
        assert (one.subject, one.notion) == (other.subject, other.notion)
        # A hair of noise is given up so that what is audited is verified to be no more than the matrix.
        np.testing.assert_allclose(other.value, one.value, rtol=1e-7)
        if one.bound == "upper":
            assert other.value >= one.value * (1 - 1e-9)


def test_low_rank_noise_is_infinite_where_it_promises_nothing():
    """Least noise for one secret hides it and publishes everything else."""
    mechanism = jp.design(PRIOR, SECRETS[0], epsilon=0.5, floor_sd=0.0).mechanism
    found = audit(PRIOR, mechanism, secrets=SECRETS[0], sensitivity=1.0)
    assert math.isfinite(_value(found, "conditional inferential"))
    assert math.isfinite(_value(found, "pointwise maximal leakage", "secret"))
    for notion, subject in (("pointwise", "the whole"), ("mutual", "the whole"), ("Rényi", ""), ("(ε, 0.01)-diff", "")):
        assert _value(found, notion, subject) == math.inf
    (row,) = found.of("Rényi")
    assert "directions of the trace are published exactly" in row.note
    singular = audit(PRIOR, np.diag([1.0] * (N - 1) + [0.0]), sensitivity=1.0)
    assert _value(singular, "Rényi") == math.inf
    assert "singular to working precision" in singular.rows[0].note
    assert json.loads(json.dumps(singular.as_dict(), allow_nan=False))["rows"][-1]["value"] is None


def test_printed_formulas_are_named_where_they_under_report():
    """The formula for independent noise, applied to the joint optimum, and the objective of SDP_A."""
    mechanism = jp.design(PRIOR, SECRETS[0], epsilon=0.5).mechanism
    noise = np.asarray(mechanism.covariance) + 0.4 * np.eye(N)
    found = audit(PRIOR, noise, secrets=SECRETS[0])
    (row,) = found.of("1/β of SDP_A")
    true = _value(found, "conditional inferential")
    assert row.bound == "not a bound" and row.value < true
    split = jp.conditional(PRIOR, SECRETS[0])
    inverse = np.linalg.pinv(np.asarray(split.regression))
    surrogate = inverse @ (np.asarray(split.residual) + noise) @ inverse.T
    np.testing.assert_allclose(row.value, 1.0 / surrogate[0, 0], rtol=1e-6)
    independent = audit(PRIOR, np.eye(N), secrets=SECRETS[0])
    assert not independent.of("1/σ²")


def test_a_linear_secret_and_a_time_between_fixes():
    weights = np.linspace(-1.0, 1.0, N)
    found = audit(PRIOR, MECHANISM, secrets=[jp.LinearSecret(weights, 1.0), jp.UnsampledSecret(2.5, 1.0)])
    covariance, noise = np.asarray(PRIOR.covariance), np.asarray(MECHANISM.covariance)
    posterior = covariance - covariance @ np.linalg.solve(covariance + noise, covariance)
    left, own = weights @ posterior @ weights, weights @ covariance @ weights
    known = _value(found, "attacker's standard deviation", "secret 0")
    assert known <= math.sqrt(left)
    np.testing.assert_allclose(known, math.sqrt(left), rtol=1e-9)
    np.testing.assert_allclose(_value(found, "mutual", "secret 0"), 0.5 * math.log(own / left), rtol=1e-9)
    assert 0 < _value(found, "mutual", "secret 1") < math.inf


def test_several_priors_give_the_worst():
    other = jp.ProcessPrior(jp.kernels.matern32(9.0, 2.0), np.arange(float(N)), 0.3)
    both = audit([PRIOR, other], MECHANISM, secrets=SECRETS[0])
    single = [audit(one, MECHANISM, secrets=SECRETS[0]) for one in (PRIOR, other)]
    for i, row in enumerate(both.rows[:5]):
        assert row.value == max(one.rows[i].value for one in single)
    assert both.rows[5].value == min(one.rows[5].value for one in single)


def test_the_table_lines_up_and_rounds_to_the_safe_side(full):
    lines = str(full).splitlines()
    column = lines[0].index("value") + len("value")
    unit = lines[0].index("unit")
    numbers = [
        line for line in lines[2:] if line[column:unit].strip() == "" and line[unit:].startswith(("nats", "unit"))
    ]
    assert len(numbers) == sum(row.unit != "" for row in full.rows)
    for line, row in zip(numbers, [row for row in full.rows if row.unit], strict=True):
        shown = float(line[:column].split()[-1])
        if row.bound == "upper":
            assert shown >= row.value
        elif row.bound == "lower":
            assert shown <= row.value
        np.testing.assert_allclose(shown, row.value, rtol=2e-4)
    assert "secret 1" not in str(full.worst(1)) or "secret 0" not in str(full.worst(1))


def test_the_global_precision_does_not_matter(full):
    with jax.enable_x64(False):
        again = audit(PRIOR, MECHANISM, secrets=SECRETS, sensitivity=0.8, delta=DELTA, order=3.0)
    assert [row.value for row in again.rows] == [row.value for row in full.rows]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prior": None, "mechanism": MECHANISM}, "nothing to audit"),
        ({"prior": None, "mechanism": MECHANISM, "secrets": SECRETS, "sensitivity": 1.0}, "need a prior"),
        ({"prior": PRIOR, "mechanism": np.eye(3)}, "3 coordinates"),
        ({"prior": PRIOR, "mechanism": np.full((N, N), np.nan)}, "not finite"),
        ({"prior": PRIOR, "mechanism": np.triu(np.ones((N, N)))}, "not symmetric"),
        ({"prior": PRIOR, "mechanism": np.diag([1.0] * (N - 1) + [-1.0])}, "negative eigenvalue"),
        ({"prior": PRIOR, "mechanism": MECHANISM, "delta": 0.0}, "probability"),
        ({"prior": PRIOR, "mechanism": MECHANISM, "order": 1.0}, "order"),
        ({"prior": PRIOR, "mechanism": MECHANISM, "sensitivity": -1.0}, "radius of -1"),
        ({"prior": PRIOR, "mechanism": MECHANISM, "sensitivity": np.ones((3, 1))}, "sensitivity"),
    ],
)
def test_bad_requests_are_refused(arguments, message):
    with pytest.raises(jp.InputError, match=message):
        audit(**arguments)
