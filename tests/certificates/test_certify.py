"""certify: what it claims, what it refuses, and that it needs nothing but NumPy."""

from __future__ import annotations

import inspect
import math
import subprocess
import sys
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import exact_loss as oracle
import flint
import jax
import numpy as np
import pytest

import jaxpriv
from jaxpriv import certificates
from jaxpriv.certificates import Certificate, arithmetic, certify, cost_upper
from jaxpriv.errors import CertificateError, InputError


@dataclass
class Prior:
    covariance: object


@dataclass
class Points:
    indices: list[int]
    radius: float = 1.0
    n_times: int = field(default=0)

    def __post_init__(self) -> None:
        self.n_times = self.n_times or len(self.indices)

    def joint(self, prior: Prior) -> tuple[object, object]:
        chosen = np.array(self.indices)
        return prior.covariance[:, chosen], prior.covariance[chosen][:, chosen]


@dataclass
class Mechanism:
    factor: object
    floor_sd: object


def exponential(size: int, scale: float = 4.0) -> np.ndarray:
    times = np.arange(size)
    return np.exp(-np.abs(times[:, None] - times) / scale)


def noise(size: int, seed: int = 0) -> Mechanism:
    return Mechanism(np.random.default_rng(seed).standard_normal((size, 2)), 0.1)


def test_every_secret_under_every_prior_with_exact_scalars() -> None:
    priors = [Prior(exponential(12)), Prior(exponential(12, 9.0))]
    secrets = [Points([3], radius=0.3), Points([5, 6], radius=2.0), Points([11])]
    mechanism = noise(12)
    certificate = certify(priors, secrets, mechanism, order=3.0)
    assert certificate.epsilons.shape == certificate.losses.shape == (3, 2)
    previous, flint.ctx.prec = flint.ctx.prec, 600
    try:
        floor = flint.arb(mechanism.floor_sd) ** 2
        low_rank = oracle.ball_matrix(mechanism.factor)
        total_noise = low_rank * low_rank.transpose() + floor * oracle.ball_matrix(np.eye(12))
        for i, secret in enumerate(secrets):
            for j, prior in enumerate(priors):
                cross, own = (oracle.ball_matrix(a) for a in secret.joint(prior))
                quadratic = cross.transpose() * (oracle.ball_matrix(prior.covariance) + total_noise).solve(cross)
                gain = (own - quadratic).inv() - own.inv()
                loss = oracle.largest_eigenvalue((gain + gain.transpose()) / 2)
                epsilon = flint.arb(3) / 2 * secret.n_times * flint.arb(secret.radius) ** 2 * loss
                assert flint.arb(certificate.losses_lower[i, j]) <= loss <= flint.arb(certificate.losses[i, j])
                assert flint.arb(certificate.epsilon_lower[i, j]) <= epsilon <= flint.arb(certificate.epsilons[i, j])
                assert certificate.epsilons[i, j] <= certificate.epsilon_lower[i, j] * (1 + 1e-13)
        cost = sum((x**2 for row in low_rank.table() for x in row), flint.arb(0)) + 12 * floor
        assert cost <= flint.arb(certificate.cost)
        assert certificate.cost <= float(cost) * (1 + 1e-15)
    finally:
        flint.ctx.prec = previous
    assert certificate.epsilon == certificate.epsilons.max()
    assert certificate.bound == "ball"
    assert certificate.warnings == ()
    assert certificate.prior_psd == "verified"


def test_adding_a_secret_or_a_prior_never_lowers_the_level() -> None:
    priors = [Prior(exponential(10, scale)) for scale in (2.0, 5.0)]
    secrets = [Points([i]) for i in (1, 4, 8)]
    levels = [certify(priors[0], secrets[:i], noise(10)).epsilon for i in (1, 2, 3)]
    levels.append(certify(priors, secrets, noise(10)).epsilon)
    assert levels == sorted(levels)


def test_odds_and_the_gaussian_curve_come_from_the_largest_ratio() -> None:
    certificate = certify(Prior(exponential(10)), [Points([2], 0.5), Points([3, 4], 0.5)], noise(10), order=5.0)
    squared = 2 * certificate.epsilon / 5
    assert certificate.gaussian_epsilon(0.01) == pytest.approx(certificates.gaussian_epsilon(squared, 0.01), rel=1e-12)
    assert certificate.gaussian_delta(0.5) == pytest.approx(certificates.gaussian_delta(squared, 0.5), rel=1e-12)
    assert certificate.odds(0.01) == pytest.approx(certificate.epsilon + math.log(100) / 4, rel=1e-14)
    assert certificate.gaussian_epsilon(0.01) < certificate.odds(0.01)


def test_an_unverifiable_bound_is_infinite_and_said_so() -> None:
    times = np.arange(20.0)
    smooth = Prior(np.exp(-((times[:, None] - times) ** 2) / 72))
    silent = Mechanism(np.zeros((20, 1)), 0.0)
    certificate = certify(smooth, Points([4]), silent)
    assert certificate.epsilon == math.inf
    assert certificate.epsilon_lower[0, 0] == 0.0
    assert certificate.gaussian_epsilon(0.1) == math.inf
    assert certificate.gaussian_delta(1.0) == 1.0
    assert certificate.odds(0.1) == math.inf
    assert "no finite loss" in certificate.warnings[0]
    assert certificate.prior_psd == "not verified"
    assert certify(smooth, Points([4]), Mechanism(np.zeros((20, 1)), 0.1)).epsilon < math.inf


def test_a_loss_known_only_roughly_is_said_so() -> None:
    certificate = certify(Prior(exponential(8)), Points([3]), noise(8), prior_rtol=1e-3)
    assert "only known within a factor" in certificate.warnings[0]
    exact = certify(Prior(exponential(8)), Points([3]), noise(8))
    assert certificate.epsilon > exact.epsilon
    assert certificate.epsilon_lower[0, 0] < exact.epsilon_lower[0, 0]


def test_it_reads_well() -> None:
    text = str(certify(Prior(exponential(8)), Points([3]), noise(8)))
    for words in ("epsilon <=", "nats", "order 2", "ball bound", "cost <=", "verified", "secret 0"):
        assert words in text


def test_float32_arrays_are_converted_exactly() -> None:
    covariance, factor = exponential(9).astype(np.float32), noise(9).factor.astype(np.float32)
    first = certify(Prior(covariance), Points([4]), Mechanism(factor, np.float32(0.1)))
    second = certify(
        Prior(covariance.astype(float)), Points([4]), Mechanism(factor.astype(float), float(np.float32(0.1)))
    )
    assert first.epsilon == second.epsilon
    assert first.cost == second.cost


def test_jax_arrays_are_accepted_and_tracers_refused() -> None:
    prior = Prior(jax.numpy.asarray(exponential(9)))
    on_device = Mechanism(jax.numpy.asarray(noise(9).factor), 0.1)
    assert (
        certify(Prior(exponential(9)), Points([4]), noise(9)).epsilon == certify(prior, Points([4]), on_device).epsilon
    )

    def traced(factor: jax.Array) -> float:
        return certify(Prior(exponential(9)), Points([4]), Mechanism(factor, 0.1)).epsilon

    with pytest.raises(InputError, match="on the host"):
        jax.jit(traced)(on_device.factor)


def test_rounding_asymmetry_is_averaged_and_a_larger_one_refused() -> None:
    covariance = exponential(6)
    covariance[1, 2] += 2.0**-54
    certify(Prior(covariance), Points([0]), noise(6))
    covariance[1, 2] += 1e-9
    with pytest.raises(InputError, match="not symmetric"):
        certify(Prior(covariance), Points([0]), noise(6))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"order": 1.0}, "order"),
        ({"order": math.nan}, "order"),
        ({"secrets": []}, "at least one"),
        ({"prior": []}, "at least one"),
        ({"secrets": Points([0], radius=0.0)}, "radius"),
        ({"secrets": Points([0], radius=-1.0)}, "radius"),
        ({"secrets": Points([0], radius=math.inf)}, "radius"),
        ({"mechanism": Mechanism(np.ones((5, 1)), 0.1)}, "5 coordinates"),
        ({"mechanism": Mechanism(np.full((6, 1), np.nan), 0.1)}, "not finite"),
        ({"mechanism": Mechanism(np.ones((6, 1)), -0.1)}, "negative"),
        ({"mechanism": Mechanism(np.ones((6, 1), complex), 0.1)}, "real"),
        ({"prior": Prior(np.ones((6, 5)))}, "shape"),
        ({"prior_rtol": -1.0}, "prior_rtol"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict, words: str) -> None:
    good = {"prior": Prior(exponential(6)), "secrets": Points([0]), "mechanism": noise(6)}
    with pytest.raises(InputError, match=words):
        certify(**{**good, **arguments})


def test_cost_is_rounded_up_and_tight() -> None:
    rng = np.random.default_rng(6)
    for _ in range(40):
        size = int(rng.integers(1, 9))
        factor = rng.standard_normal((size, int(rng.integers(0, 5)))) * 10 ** rng.uniform(-9, 9)
        floor = float(10 ** rng.uniform(-9, 1))
        weights = rng.random(size)
        root = rng.standard_normal((size, size))
        full = root @ root.T
        full = (full + full.T) / 2
        columns = [[Fraction(x) for x in column] for column in factor.T.tolist()]
        for given in (None, weights, full):
            matrix = np.eye(size) if given is None else np.diag(given) if given.ndim == 1 else given
            rows = [[Fraction(x) for x in row] for row in matrix.tolist()]
            exact = sum(Fraction(floor) * rows[i][i] for i in range(size))
            for column in columns:
                exact += sum(column[i] * sum(w * x for w, x in zip(rows[i], column, strict=True)) for i in range(size))
            value = cost_upper(factor, floor, given)
            assert Fraction(value) >= exact
            assert value <= float(exact) * (1 + 1e-15)
    assert cost_upper(np.full((2, 2), 1e200), 0.0) == math.inf


# The arithmetic that everything rests on.


@pytest.fixture
def unchecked() -> None:
    arithmetic._check_rounding_and_products.cache_clear()
    yield
    arithmetic._check_rounding_and_products.cache_clear()


def attempt() -> Certificate:
    return certify(Prior(exponential(6)), Points([2]), noise(6))


def test_flushing_to_zero_is_noticed(monkeypatch: pytest.MonkeyPatch, unchecked: None) -> None:
    multiply = np.multiply

    def flushing(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        product = multiply(a, b)
        return np.where(np.abs(product) < np.finfo(np.float64).tiny, 0.0, product)

    monkeypatch.setattr(np, "multiply", flushing)
    with pytest.raises(CertificateError, match="flushed"):
        attempt()


def shortened(values: np.ndarray, bits: int) -> np.ndarray:
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(np.ldexp(mantissa, bits)), exponent - bits)


@pytest.mark.parametrize("bits", [11, 24, 45])
def test_products_in_a_shorter_format_are_noticed(monkeypatch: pytest.MonkeyPatch, unchecked: None, bits: int) -> None:
    matmul = np.matmul
    monkeypatch.setattr(np, "matmul", lambda a, b: matmul(shortened(a, bits), shortened(b, bits)))
    with pytest.raises(CertificateError, match="product"):
        attempt()


def test_a_fast_matrix_algorithm_is_noticed(monkeypatch: pytest.MonkeyPatch, unchecked: None) -> None:
    def strassen(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        half = len(a) // 2
        p, q, r, s = a[:half, :half], a[:half, half:], a[half:, :half], a[half:, half:]
        w, x, y, z = b[:half, :half], b[:half, half:], b[half:, :half], b[half:, half:]
        m1, m2, m3 = (p + s) @ (w + z), (r + s) @ w, p @ (x - z)
        m4, m5, m6, m7 = s @ (y - w), (p + q) @ z, (r - p) @ (w + x), (q - s) @ (y + z)
        return np.block([[m1 + m4 - m5 + m7, m3 + m5], [m2 + m4, m1 - m2 + m3 + m6]])

    monkeypatch.setattr(np, "matmul", strassen)
    with pytest.raises(CertificateError, match="product"):
        attempt()


def test_rounding_that_is_not_to_nearest_is_noticed(monkeypatch: pytest.MonkeyPatch, unchecked: None) -> None:
    add = np.add
    monkeypatch.setattr(np, "add", lambda a, b: np.nextafter(add(a, b), np.inf))
    with pytest.raises(CertificateError, match="nearest"):
        attempt()


def test_it_works_without_jax() -> None:
    """The certificates of a package that is not imported itself: nothing below may load JAX."""
    folder = str(Path(jaxpriv.__file__).parent)
    script = f"""
import sys, types
package = types.ModuleType("jaxpriv")
package.__path__ = [{folder!r}]
sys.modules["jaxpriv"] = package
import numpy as np
import jaxpriv.certificates as certificates
bound = certificates.loss_bounds(np.eye(3), [(np.eye(3)[:, :1], np.eye(1))], np.zeros((3, 0)), 0.25)[0]
assert bound.lower <= 4.0 <= bound.upper < 4.001
assert not any(name == "jax" or name.startswith(("jax.", "jaxlib")) for name in sys.modules)
print("done")
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == "done", ran.stderr


# Every public function that returns a number to rely on is compared with ball arithmetic somewhere: a new one has to be
# entered here, with the test that does it.
CHECKED = {
    "certify": "test_certify.py",
    "loss_bounds": "test_loss.py",
    "cost_upper": "test_certify.py",
    "loss_lower_bound": "test_lower_bounds.py",
    "cost_lower_bound": "test_lower_bounds.py",
    "majorant_lower_bound": "test_lower_bounds.py",
    "is_semidefinite": "test_definiteness.py",
    "dominates": "test_definiteness.py",
    "smallest_eigenvalue_lower": "test_definiteness.py",
    "largest_eigenvalue_upper": "test_definiteness.py",
    "eigenvalue_bounds": "test_definiteness.py",
    "log_determinant_bounds": "test_definiteness.py",
    "chi_square_quantile": "test_scalars.py",
    "chi_square_tail": "test_scalars.py",
    "exp_upper": "test_scalars.py",
    "gaussian_delta": "test_scalars.py",
    "gaussian_epsilon": "test_scalars.py",
    "log_bounds": "test_scalars.py",
    "odds_bound": "test_scalars.py",
    "renyi_epsilon": "test_scalars.py",
}
NO_CLAIM = {"require_arithmetic", "trial_from_design"}


def test_every_public_function_is_compared_with_an_oracle() -> None:
    public = {
        name
        for name, value in vars(certificates).items()
        if callable(value) and not name.startswith("_") and not inspect.isclass(value)
    }
    assert public == set(CHECKED) | NO_CLAIM
    for name, file in CHECKED.items():
        source = (Path(__file__).parent / file).read_text()
        assert f"{name}(" in source, name
        assert "flint" in source or "Fraction" in source


def test_ill_conditioned_problems_end_to_end() -> None:
    """Every field of a certificate that says epsilon, loss or cost, on problems from harmless to singular."""
    for problem in oracle.problems(40, seed=99):
        if problem["size"] > 30:
            continue
        floor_sd = float(np.sqrt(problem["floor"]))
        secret = Points([int(i) for i in problem["secret"]], radius=0.75)
        certificate = certify(Prior(problem["covariance"]), secret, Mechanism(problem["factor"], floor_sd))
        below, above = arithmetic.square_bounds(floor_sd)
        arrays = problem["covariance"], problem["cross"], problem["variance"], problem["factor"]
        most, least = oracle.true_loss(*arrays, below), oracle.true_loss(*arrays, above)
        if most is None:
            assert certificate.epsilon == math.inf
            continue
        assert not flint.arb(certificate.losses[0, 0]) < least
        assert not flint.arb(certificate.losses_lower[0, 0]) > most
        scale = secret.n_times * flint.arb(0.75) ** 2
        assert not flint.arb(certificate.epsilon) < scale * least
        assert not flint.arb(certificate.epsilon_lower[0, 0]) > scale * most
