"""`design_leakage`, the release of least mean squared error, and suppression."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erfc
from scipy.stats import chi2

from jaxpriv.designs.leakage.min_mse import minimum_error_release
from jaxpriv.designs.leakage.suppression import suppressed
from jaxpriv.designs.leakage.verb import design_leakage
from jaxpriv.errors import InfeasibleError, InputError


PRIOR = np.array([[2.0, 0.5, 0.3], [0.5, 1.0, 0.2], [0.3, 0.2, 1.5]])
MATRIX = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, -1.0]])


def leakage(prior, matrix, noise, own, delta):
    signal = matrix @ prior @ matrix.T
    information = 0.5 * (np.linalg.slogdet(signal + own + noise)[1] - np.linalg.slogdet(own + noise)[1])
    return information + 0.5 * chi2.isf(delta, len(signal))


@pytest.mark.parametrize("criterion", ["exact", "lmi"])
@pytest.mark.parametrize("own", [None, [[0.4, 0.1], [0.1, 1.5]]])
def test_certified_leakage(criterion, own):
    found = design_leakage(PRIOR, MATRIX, epsilon=4.0, delta=0.05, criterion=criterion, own=own)
    truth = leakage(PRIOR, MATRIX, found.noise, np.zeros((2, 2)) if own is None else np.array(own), 0.05)
    # The truth itself is computed to about 1e-14 here.
    assert truth - 1e-13 <= found.epsilon <= 4.0
    assert found.epsilon == pytest.approx(truth, abs=1e-9)
    assert 0.0 <= found.gap <= 1e-6
    np.testing.assert_array_equal(found.factor @ found.factor.T, found.noise)
    assert "leakage" in str(found)


def test_exact_against_the_determinant_program():
    import cvxpy as cp

    rng = np.random.default_rng(2)
    for size in (2, 5, 8):
        root = rng.normal(size=(size, size))
        prior = root @ root.T / size + 0.05 * np.eye(size)
        found = design_leakage(prior, np.eye(size), epsilon=0.6 * chi2.isf(0.05, size), delta=0.05)
        budget = 2 * 0.6 * chi2.isf(0.05, size) - chi2.isf(0.05, size)
        noise, posterior = cp.Variable((size, size), PSD=True), cp.Variable((size, size), symmetric=True)
        block = cp.bmat([[prior - posterior, prior], [prior, prior + noise]])
        problem = cp.Problem(
            cp.Minimize(cp.trace(noise)),
            [block >> 0, cp.log_det(posterior) >= np.linalg.slogdet(prior)[1] - budget],
        )
        problem.solve(solver="CLARABEL")
        # The interior-point solver stops at 1e-8 of its own scale.
        assert found.cost == pytest.approx(float(problem.value), rel=1e-6)


def test_infeasible_requests_say_what_is_possible():
    with pytest.raises(InfeasibleError, match="out of reach for 2 dimensions") as caught:
        design_leakage(PRIOR, MATRIX, epsilon=2.9, delta=0.05)
    assert caught.value.smallest_feasible == pytest.approx(chi2.isf(0.05, 2) / 2, rel=1e-12)
    with pytest.raises(InputError, match="full row rank"):
        design_leakage(PRIOR, np.vstack([MATRIX, MATRIX[:1]]), epsilon=9.0, delta=0.05)
    with pytest.raises(InputError, match="weights is not positive definite"):
        design_leakage(PRIOR, MATRIX, epsilon=4.0, delta=0.05, weights=[[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(InputError, match="not positive definite"):
        design_leakage(np.ones((3, 3)), MATRIX, epsilon=4.0, delta=0.05)
    for wrong in ({"epsilon": -1.0, "delta": 0.05}, {"epsilon": 4.0, "delta": 1.0}, {"epsilon": np.nan, "delta": 0.1}):
        with pytest.raises(InputError):
            design_leakage(PRIOR, MATRIX, **wrong)


def test_minimum_error_known_answers():
    signal = np.diag([4.0, 1.0, 0.5, 0.1])
    # The design keeps 1e-9 of the information budget back, which costs as much of the error.
    four = minimum_error_release(signal, epsilon=4.0, delta=0.05)
    assert four.rank == 1 and four.error == pytest.approx(1.662521372657, rel=1e-9)
    six = minimum_error_release(signal, epsilon=6.0, delta=0.05)
    assert six.rank == 2 and six.level == pytest.approx(0.09915008706665, rel=1e-8)
    assert six.error == pytest.approx(0.7983001741333, rel=1e-8)
    np.testing.assert_allclose(six.noise, [0.101670240363, 0.110062825831], rtol=1e-8)
    eight = minimum_error_release(signal, epsilon=8.0, delta=0.05)
    assert eight.rank == 3 and eight.error == pytest.approx(0.3469022713019, rel=1e-8)
    nothing = minimum_error_release(signal, epsilon=1.9, delta=0.05)
    assert nothing.rank == 0 and nothing.error == 5.6 and nothing.epsilon == 0.0
    assert four.epsilon <= 4.0 and six.epsilon <= 6.0 and eight.epsilon <= 8.0


def test_no_random_release_has_less_error():
    rng = np.random.default_rng(8)
    root = rng.normal(size=(3, 3))
    signal = root @ root.T
    epsilon, delta = 6.0, 0.05
    best = minimum_error_release(signal, epsilon=epsilon, delta=delta).error
    closest = np.inf
    for _ in range(300):
        rank = rng.integers(1, 4)
        rows, shape = rng.normal(size=(rank, 3)), rng.normal(size=(rank, rank))
        seen, noise = rows @ signal @ rows.T, shape @ shape.T
        budget = 2 * epsilon - chi2.isf(delta, rank)
        if budget <= 0:
            continue
        low, high = 1e-12, 1e12
        for _ in range(200):
            middle = np.sqrt(low * high)
            spent = np.linalg.slogdet(np.eye(rank) + np.linalg.solve(middle * noise, seen))[1]
            low, high = (middle, high) if spent > budget else (low, middle)
        gain = signal @ rows.T
        error = np.trace(signal - gain @ np.linalg.solve(seen + high * noise, gain.T))
        closest = min(closest, error)
        assert error >= best * (1 - 1e-9)
    assert closest < 3 * best


@pytest.mark.parametrize("epsilon", [2.5, 3.0, 5.0])
@pytest.mark.parametrize("noise", [0.5, 5.0, 500.0])
def test_suppression_is_never_above_epsilon(epsilon, noise):
    one = suppressed([[1.0]], [[1.0]], [[noise]], epsilon=epsilon)
    kept = one.information + one.threshold
    assert kept <= epsilon
    # One dimension: the tail of χ² is the complementary error function.
    probability = erfc(np.sqrt(max(one.threshold, 0.0)))
    assert one.withheld == pytest.approx(probability, rel=1e-12)
    assert -np.log(one.withheld) <= epsilon


def test_suppression_thresholds():
    # ½ q_1(e^−ε), the largest threshold in one dimension, with noise so large that I is negligible.
    for epsilon, largest in ((2.5, 1.51156), (3.0, 1.92431), (5.0, 3.67076)):
        assert suppressed([[1.0]], [[1.0]], [[1e9]], epsilon=epsilon).threshold == pytest.approx(largest, abs=1e-5)
    two = suppressed(MATRIX, PRIOR, 4.0 * np.eye(2), epsilon=3.0)
    assert two.threshold == pytest.approx(3.0 - two.information, abs=1e-9)


def test_suppressed_outputs_leak_at_most_epsilon():
    noise = np.array([[1.0, 0.2], [0.2, 0.5]])
    one = suppressed(MATRIX, PRIOR, noise, epsilon=4.0)
    keys = jax.random.split(jax.random.key(0), 20_000)
    root = np.linalg.cholesky(PRIOR)
    people = jnp.asarray(np.random.default_rng(1).normal(size=(20_000, 3)) @ root.T)
    outputs, sent = jax.vmap(one.simulate)(keys, people)
    outputs, sent = np.asarray(outputs), np.asarray(sent)
    assert np.all(np.isnan(outputs[~sent])) and np.all(np.isfinite(outputs[sent]))
    # Within five binomial standard deviations of P(⊥).
    spread = 5 * np.sqrt(one.withheld * (1 - one.withheld) / len(sent))
    assert abs(np.mean(~sent) - one.withheld) < spread
    # The information density at the worst x, by its closed form from the output covariance.
    total = MATRIX @ PRIOR @ MATRIX.T + noise
    xi = np.einsum("ij,ij->i", outputs[sent], np.linalg.solve(total, outputs[sent].T).T)
    assert np.max(one.information + 0.5 * xi) <= 4.0
    assert np.max(one.information + 0.5 * xi) > 3.9


def test_suppression_refuses_singular_releases():
    with pytest.raises(InputError, match="singular"):
        suppressed(np.vstack([MATRIX[0], MATRIX[0]]), PRIOR, np.eye(2), epsilon=3.0)
    with pytest.raises(InputError, match="shape"):
        suppressed(MATRIX, PRIOR, np.eye(3), epsilon=3.0)
    with pytest.raises(InputError, match="epsilon"):
        suppressed(MATRIX, PRIOR, np.eye(2), epsilon=0.0)
