"""What the page of a report shows beyond its record: the true positions, what is believed, and the noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jaxpriv.jobs.believed import drawn_fixes
from jaxpriv.jobs.prior_sources import PriorSource
from jaxpriv.jobs.secret_sources import ChosenSecrets
from jaxpriv.report.page.details import ReleaseDetails, SecretDetails, covariance_rows
from jaxpriv.report.record import Report
from jaxpriv.traces.instants import parse_instant
from jaxpriv.traces.trace import Trace


if TYPE_CHECKING:
    from jaxpriv.jobs.designing import Noise
    from jaxpriv.jobs.noise import ReleasedPoints


def page_details(
    trace: Trace,
    metres: np.ndarray,
    secrets: ChosenSecrets,
    source: PriorSource,
    noise: Noise,
    released: ReleasedPoints,
    report: Report,
) -> ReleaseDetails:
    """Gather the arrays of the page; `metres` (n, axes) are the true positions."""
    axes = (noise.east, noise.north)
    paths = [axis.believed_path(released.metres[:, i]) for i, axis in enumerate(axes)]
    positions = sorted({position for secret in secrets.secrets for position in secret.positions})
    drawn = drawn_fixes(trace.n_points, positions)
    rows = covariance_rows(len(drawn), np.searchsorted(drawn, positions).tolist())
    named = [[(prior, label) for prior, label in zip(one.choices, one.labels, strict=True)] for one in source.axes]
    if named[0] == named[1]:
        labels = source.axes[0].labels
        worst = (labels[noise.east.worst], labels[noise.north.worst])
        epsilons = np.maximum(noise.east.design.certificate.epsilons, noise.north.design.certificate.epsilons)
    else:
        east, north = (
            tuple(f"{name}: {label}" for label in members.labels)
            for name, members in zip(("east", "north"), source.axes, strict=True)
        )
        labels, worst = east + north, (east[noise.east.worst], north[noise.north.worst])
        epsilons = np.concatenate([axis.design.certificate.epsilons for axis in axes], axis=1)
    return ReleaseDetails(
        time_us=trace.time_us[drawn],
        true_m=metres[drawn],
        released_m=released.metres[drawn],
        believed_m=np.stack([mean[drawn] for mean, _ in paths], axis=1),
        halfwidth_m=np.stack([halfwidth[drawn] for _, halfwidth in paths], axis=1),
        secrets=tuple(
            SecretDetails(
                label=numbers.label,
                first_us=_instant(secret.times[0]),
                last_us=_instant(secret.times[-1]),
                indices=tuple(np.searchsorted(drawn, secret.positions).tolist()),
                radius_m=report.radius_m,
                epsilon=numbers.epsilon,
                odds_factor=numbers.odds_factor,
                before_m=numbers.prior_halfwidth_m,
                after_m=numbers.posterior_halfwidth_m,
                independent_epsilon=numbers.independent_epsilon,
            )
            for secret, numbers in zip(secrets.secrets, report.by_secret, strict=True)
        ),
        prior_labels=labels,
        worst_priors=worst,
        epsilons=epsilons,
        covariance_rows=rows,
        covariances=np.stack([axis.noise_block(drawn[rows]) for axis in axes]),
        axes=tuple(record.name for record in report.axes),
        unit=report.unit,
        points=trace.n_points,
    )


def _instant(one) -> int:
    return parse_instant(one.record.fix_time or one.record.time).us
