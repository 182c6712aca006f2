"""A made-up day with three secrets, its release and its report, small enough for every test."""

from __future__ import annotations

import math

import numpy as np
import pytest

from jaxpriv.jobs.demo_trace import ORIGIN, demo_day
from jaxpriv.jobs.odds import odds_record
from jaxpriv.report.claims import guarantee, not_claimed
from jaxpriv.report.page.details import ReleaseDetails, SecretDetails, covariance_rows
from jaxpriv.report.record import (
    AxisRecord,
    IndependentRecord,
    PriorRecord,
    ReleasesRecord,
    Report,
    SecretRecord,
)
from jaxpriv.traces.cleaning import clean
from jaxpriv.traces.csv_format import read_csv
from jaxpriv.traces.instants import format_instant


ORDER, DELTA = 2.0, 0.01
NUGGET_M = 5.0


def _matern32(seconds, lengthscale, sd=2500.0):
    lag = math.sqrt(3) * np.abs(seconds[:, None] - seconds[None]) / lengthscale
    return sd**2 * (1 + lag) * np.exp(-lag) + NUGGET_M**2 * np.eye(len(seconds))


def _loss(covariance, noise, index):
    """Gain in precision about one fix (1/m²)."""
    left = covariance[index, index] - covariance[index] @ np.linalg.solve(covariance + noise, covariance[:, index])
    return 1 / left - 1 / covariance[index, index]


def make_page(points=120, wanted=(("clinic", 111, 500.0), ("home", 40, 300.0), ("work", 300, 800.0))):
    """Report and details of a made-up day. The noise is a smooth bump around each secret: not optimal, but real."""
    trace = clean(read_csv(demo_day(points).csv))
    seconds, n = trace.seconds, trace.n_points
    true = trace.mean_by_point(ORIGIN.to_metres(trace.latitude, trace.longitude))
    indices = [int(np.argmin(np.abs(seconds / 60 - minute))) for _, minute, _ in wanted]
    noise = 4.0 * np.eye(n)
    for index, (_, _, radius) in zip(indices, wanted, strict=True):
        bump = 1.1 * radius * np.exp(-(((seconds - seconds[index]) / 2400) ** 2))
        noise += np.outer(bump, bump)
    lengthscales = (900.0, 1800.0, 3600.0)
    priors = [_matern32(seconds, lengthscale) for lengthscale in lengthscales]
    radii = [radius for _, _, radius in wanted]
    losses = np.array([[_loss(prior, noise, index) for prior in priors] for index in indices])
    epsilons = ORDER / 2 * np.array(radii)[:, None] ** 2 * losses
    worst = int(np.argmax(epsilons.max(axis=0)))
    gain = np.linalg.solve(priors[worst] + noise, priors[worst]).T
    rng = np.random.default_rng(3)
    released = true + np.linalg.cholesky(noise) @ rng.normal(size=(n, 2))
    left = np.sqrt(np.diag(priors[worst]) - np.einsum("ij,ji->i", gain, priors[worst]))
    rows = covariance_rows(n, indices)
    block = noise[np.ix_(rows, rows)]
    secrets = tuple(
        SecretDetails(
            label=label,
            first_us=int(trace.time_us[index]),
            last_us=int(trace.time_us[index]),
            indices=(index,),
            radius_m=radius,
            epsilon=float(epsilons[i].max()),
            odds_factor=odds_record(float(epsilons[i].max()), ORDER, DELTA).exact_factor,
            before_m=(2500.0, 2500.0),
            after_m=(float(left[index]), float(left[index])),
            independent_epsilon=40.0 + i,
        )
        for i, (index, (label, _, radius)) in enumerate(zip(indices, wanted, strict=True))
    )
    details = ReleaseDetails(
        time_us=trace.time_us,
        true_m=true,
        released_m=released,
        believed_m=gain @ released,
        halfwidth_m=np.stack([left, left], axis=1),
        secrets=secrets,
        prior_labels=tuple(f"Matérn-3/2, {lengthscale / 60:.0f} min" for lengthscale in lengthscales),
        worst_priors=(f"Matérn-3/2, {lengthscales[worst] / 60:.0f} min",) * 2,
        epsilons=epsilons,
        covariance_rows=rows,
        covariance_east=block,
        covariance_north=block,
    )
    return _report(trace, details, noise, radii, lengthscales, losses), details


def _report(trace, details, noise, radii, lengthscales, losses):
    records = tuple(
        PriorRecord("made up for this test", "matern32", lengthscale, None, 2500.0, NUGGET_M)
        for lengthscale in lengthscales
    )
    epsilon = float(details.epsilons.max())
    rms = math.sqrt(2 * np.trace(noise) / trace.n_points)
    spread = np.sqrt(2 * np.diag(noise))
    table = tuple(tuple(row) for row in details.epsilons.tolist())
    axes = tuple(AxisRecord(name, records, table, float(losses.max()), 2.0) for name in ("east", "north"))
    return Report(
        prior=records[0],
        secrets=tuple(
            SecretRecord(format_instant(secret.first_us), format_instant(secret.first_us), 0.0)
            for secret in details.secrets
        ),
        axes=axes,
        simulated=True,
        tau=None,
        releases=ReleasesRecord(1, 0),
        guarantee=guarantee(None),
        radius_m=max(radii),
        plane_radius_m=max(radii) * 1.0003,
        order=ORDER,
        epsilon=epsilon,
        epsilon_asked=2.0,
        epsilon_east=epsilon,
        epsilon_north=epsilon,
        odds=odds_record(epsilon, ORDER, DELTA),
        prior_halfwidth_east_m=2500.0,
        prior_halfwidth_north_m=2500.0,
        posterior_halfwidth_east_m=details.secrets[0].after_m[0],
        posterior_halfwidth_north_m=details.secrets[0].after_m[1],
        rms_noise_m=rms,
        largest_noise_m=float(spread.max()),
        smallest_noise_m=float(spread.min()),
        rms_lower_bound_m=0.8 * rms,
        gap=0.36,
        independent=IndependentRecord(4.6 * rms, 41.5, 1.9e9),
        floor_sd_m=2.0,
        grid_m=1.0,
        grid_exponent=0,
        resolution_m=0.5,
        origin=(45.0, -30.0),
        points=trace.n_points,
        rows_read=trace.n_rows,
        rows_written=trace.n_rows,
        cleaning=("1 row dropped: no time.",),
        warnings=("A warning that somebody must read.",),
        not_claimed=not_claimed(True),
        jaxpriv_version="0.1.0",
    )


@pytest.fixture(scope="session")
def page():
    return make_page()
