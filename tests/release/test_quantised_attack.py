"""Recorded data lie on a lattice: without a floor the least-noise release gives them away, with one it does not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fixed_bytes import seeded
from scipy import stats

from jaxpriv.errors import InputError
from jaxpriv.mechanisms.exact_normal import exact_normals
from jaxpriv.mechanisms.exact_rounding import exact_grid_integers
from jaxpriv.mechanisms.grid_release import _release, release


SIZE, MIDDLE, QUANTUM = 50, 25, 1e-3


def problem(nugget: float) -> tuple[np.ndarray, np.ndarray]:
    """A squared-exponential prior of length scale 6.1 and the least-noise factor of power 1 for its middle point.

    G = b u uᵀ with u ∝ (Σ + b I)⁻¹ Σ_{:s} is the least-trace noise for one scalar secret (derived here; proof in
    docs/design.md).
    """
    times = np.arange(SIZE)
    prior = np.exp(-((times[:, None] - times) ** 2) / (2 * 6.1**2)) + nugget * np.eye(SIZE)
    u = np.linalg.solve(prior + np.eye(SIZE), prior[:, MIDDLE])
    return prior, (u / np.linalg.norm(u))[:, None]


def recorded_trace(prior: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Integers in units of QUANTUM: a trace of the prior, rounded as a recorder rounds it."""
    root = np.linalg.cholesky(prior + 1e-12 * np.eye(SIZE))
    return np.rint(root @ rng.normal(size=SIZE) / QUANTUM).astype(np.int64)


def guess_without_floor(published: np.ndarray, line: np.ndarray) -> np.ndarray:
    """The point of the line {published - line z} that is nearest to the lattice, as integers in units of QUANTUM."""
    reach = 6.5 * abs(line[MIDDLE])
    at_middle = np.arange(
        math.floor((published[MIDDLE] - reach) / QUANTUM), math.ceil((published[MIDDLE] + reach) / QUANTUM)
    )
    z = (published[MIDDLE] - at_middle * QUANTUM) / line[MIDDLE]
    points = (published[:, None] - line[:, None] * z) / QUANTUM
    misfit = np.sum((points - np.rint(points)) ** 2, axis=0)
    return np.rint(points[:, np.argmin(misfit)]).astype(np.int64)


def guess_with_floor(published: np.ndarray, line: np.ndarray, prior: np.ndarray, variance: float) -> float:
    """The secret's most likely value for an attacker who uses the lattice: a scan of the noise on the line.

    The likelihood of z is its density, the prior of the point on the line, and for each coordinate the sum over the
    lattice of the floor's density, as its Fourier series.
    """
    step = 0.4 * math.sqrt(variance) / np.max(np.abs(line))
    covariance = np.linalg.inv(prior + variance * np.eye(SIZE))
    # the smooth part is a parabola in z: scan five of its standard deviations about its top
    curvature = 1 + line @ covariance @ line
    top = line @ covariance @ published / curvature
    z = top + np.arange(-5 / math.sqrt(curvature), 5 / math.sqrt(curvature), step)
    points = published[:, None] - line[:, None] * z
    phase, order, table = np.arange(2048) / 2048, 1, np.ones(2048)
    while (size := 2 * math.exp(-2 * (math.pi * order) ** 2 * variance / QUANTUM**2)) > 1e-9:
        table += size * np.cos(2 * math.pi * order * phase)
        order += 1
    cell = (points * (2048 / QUANTUM)).astype(np.int64) & 2047
    score = -0.5 * curvature * (z - top) ** 2 + np.sum(np.log(np.maximum(table, 1e-12))[cell], axis=0)
    return float(points[MIDDLE, np.argmax(score)])


def attack_without_floor(nugget: float, trials: int, step_of_grid: int) -> int:
    """Traces recovered in full, of `trials`, from noise on a line alone and a fine public grid."""
    prior, factor = problem(nugget)
    rng, source, recovered = np.random.default_rng(1), seeded(2), 0
    for _ in range(trials):
        trace = recorded_trace(prior, rng)
        integers = exact_grid_integers(trace * QUANTUM, factor, 0.0, exact_normals(1 + SIZE, source), step_of_grid)
        published = np.array(integers, dtype=float) * 2.0**step_of_grid
        recovered += np.array_equal(guess_without_floor(published, factor[:, 0]), trace)
    return recovered


def attack_with_floor(nugget: float, trials: int, floor_sd: float) -> tuple[int, int, float]:
    """(secrets located to 3 floor_sd + QUANTUM, traces recovered in full, chance of the first without the lattice)."""
    prior, factor = problem(nugget)
    rng, source, located, recovered = np.random.default_rng(3), seeded(4), 0, 0
    for _ in range(trials):
        trace = recorded_trace(prior, rng)
        made = _release(trace * QUANTUM, factor, floor_sd, resolution=0.0, exponent=None, _bytes=source)
        guess = guess_with_floor(made.values, factor[:, 0], prior, floor_sd**2 + made.step**2 / 12)
        located += abs(guess - QUANTUM * trace[MIDDLE]) <= 3 * floor_sd + QUANTUM
        z = (made.values[MIDDLE] - guess) / factor[MIDDLE, 0]
        recovered += np.array_equal(np.rint((made.values - factor[:, 0] * z) / QUANTUM), trace)
    noisy = prior + factor @ factor.T + (floor_sd**2 + floor_sd**2 / 12) * np.eye(SIZE)
    posterior = prior[MIDDLE, MIDDLE] - prior[MIDDLE] @ np.linalg.solve(noisy, prior[MIDDLE])
    chance = 2 * stats.norm.cdf((3 * floor_sd + QUANTUM) / math.sqrt(posterior)) - 1
    return located, recovered, chance


@pytest.mark.parametrize("nugget", [1e-4, 1e-8])
def test_control_without_a_floor_the_whole_trace_is_recovered(nugget):
    assert attack_without_floor(nugget, 40, -14) == 40  # 2^-14 is a sixteenth of the quantum


def test_control_the_lattice_attack_sees_through_a_tenth_of_a_quantum():
    located, _, chance = attack_with_floor(1e-4, 10, QUANTUM / 10)
    assert located == 10 and chance < 0.01


def check_default_floor(nugget: float, trials: int) -> None:
    located, recovered, chance = attack_with_floor(nugget, trials, 2 * QUANTUM)
    assert recovered == 0
    # A blind guess from the posterior also falls within 3 floor_sd + QUANTUM now and then; the lattice adds nothing.
    assert located <= stats.binom.isf(1e-7, trials, chance)


def test_default_floor_stops_the_lattice_attack():
    check_default_floor(1e-4, 40)


@pytest.mark.slow
@pytest.mark.parametrize("nugget", [1e-4, 1e-8])
def test_default_floor_stops_the_lattice_attack_at_length(nugget):
    check_default_floor(nugget, 200)


def test_release_refuses_what_the_attack_breaks():
    _, factor = problem(1e-4)
    for floor_sd in (0.0, 1e-9, QUANTUM, math.nextafter(2 * QUANTUM, 0)):
        with pytest.raises(InputError):
            release(np.zeros(SIZE), factor, floor_sd, resolution=QUANTUM)
    release(np.zeros(SIZE), factor, 2 * QUANTUM, resolution=QUANTUM)


def lattice_ripple(precision: np.ndarray, centre: np.ndarray) -> float:
    """Largest relative deviation of a sum of exp(-½ (x-c)ᵀ A (x-c)) over integer points from its integral."""
    size = len(precision)
    covariance = np.linalg.inv(precision)
    reach = math.ceil(7.5 * math.sqrt(np.max(np.diag(covariance)))) + 1  # terms beyond weigh below 1e-12
    axes = [np.arange(-reach, reach + 1)] * size
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, size) - centre
    total = np.sum(np.exp(-0.5 * np.einsum("pi,ij,pj->p", points, precision, points)))
    return abs(total * math.sqrt(np.linalg.det(precision) / (2 * math.pi) ** size) - 1)


@pytest.mark.parametrize("size", [2, 3])
def test_ripple_bound(size):
    """(1 + 2 Σ_j e^{-2π² j² κ²})^n - 1 with κ² = (1/λ_min(C) + 1/λ_min(G))⁻¹ bounds the ripple; never exceeded."""
    rng, closest = np.random.default_rng(size), 0.0
    for case in range(50):
        if case < 10:  # equality: A isotropic and the centre on the lattice
            c, g, centre = (scale * np.eye(size) for scale in rng.uniform(0.1, 1, 3))
            centre = np.zeros(size)
        else:
            c, g = (a @ a.T + 0.1 * np.eye(size) for a in rng.normal(size=(2, size, size)))
            centre = rng.uniform(-0.5, 0.5, size)
        smallest = 1 / (1 / np.linalg.eigvalsh(c)[0] + 1 / np.linalg.eigvalsh(g)[0])
        bound = (1 + 2 * sum(math.exp(-2 * (math.pi * j) ** 2 * smallest) for j in range(1, 40))) ** size - 1
        ripple = lattice_ripple(np.linalg.inv(c) + np.linalg.inv(g), centre)
        assert ripple <= bound * (1 + 1e-9) + 1e-11
        closest = max(closest, ripple / bound)
    assert closest > 0.999


def test_ripple_at_the_default_floor_is_below_1e_15():
    kappa2 = 1 / (1 / 4 + 1 / 4)  # floor and square root of the nugget both two quanta
    assert (1 + 2 * math.exp(-2 * math.pi**2 * kappa2)) ** 50 - 1 < 1e-15
    assert 4e-3 < 2 * 50 * math.exp(-2 * math.pi**2 / 2) < 6e-3  # one quantum each: not enough


def test_law_of_the_output_on_a_lattice_stays_within_its_factor():
    """A discrete Gaussian input: p(z) is within (1+ρ)/(1-ρ) of the continuous model's, to the far tail.

    The second-order smaller (1+ρ)² is not a bound: here the sum over the lattice is at its largest while the discrete
    Gaussian's normaliser is at its smallest.
    """
    c, g, mean = 0.187, 1000.0, 0.5
    rho = 2 * sum(math.exp(-2 * (math.pi * j) ** 2 / (1 / c + 1 / g)) for j in range(1, 9))
    lattice = np.arange(-40, 41)
    prior = np.exp(-((lattice - mean) ** 2) / (2 * c))
    prior /= prior.sum()
    highest = 0.0
    for offset in np.linspace(-1, 1, 81):  # of the posterior's centre from the prior's
        z = mean + offset * (1 + g / c)
        centre = mean + offset
        # log p(z) - log of the continuous density, both without the factor that they share
        terms = np.log(prior, where=prior > 0, out=np.full(81, -np.inf)) - (z - lattice) ** 2 / (2 * g)
        discrete = terms.max() + math.log(np.sum(np.exp(terms - terms.max())))
        continuous = -((z - mean) ** 2) / (2 * (c + g)) + 0.5 * math.log(g / (c + g))
        ratio = math.exp(discrete - continuous)
        assert (1 - rho) / (1 + rho) <= ratio * (1 + 1e-9) and ratio * (1 - 1e-9) <= (1 + rho) / (1 - rho)
        highest = max(highest, ratio if abs(centre - round(centre)) < 1e-9 else 0.0)
    assert highest > (1 + rho) ** 2 * 1.001
