"""The report of a series as a page: one private file that opens without a network."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from jaxpriv.jobs.believed import drawn_fixes
from jaxpriv.jobs.series.text import prior_sentence, sections
from jaxpriv.report.page.details import ReleaseDetails, SecretDetails, covariance_rows
from jaxpriv.report.page.document import Section, document
from jaxpriv.report.page.legend import legend
from jaxpriv.report.page.noise import draw_noise
from jaxpriv.report.page.series import draw_series
from jaxpriv.report.page.words import bullets, figure_box
from jaxpriv.report.plain import odds_factor
from jaxpriv.report.rounding import given, significant
from jaxpriv.report.text import SIMULATED
from jaxpriv.traces.instants import parse_instant
from jaxpriv.traces.series import Series


if TYPE_CHECKING:
    from jaxpriv.jobs.series.file import ReleasedValues
    from jaxpriv.jobs.series.record import SeriesReport
    from jaxpriv.jobs.series.report import PlannedSeries


def series_html(series: Series, made: PlannedSeries, released: ReleasedValues, report: SeriesReport) -> str:
    """Write the page. It shows the true values; texts of the file and of the user are escaped."""
    details = _details(series, made, released, report)
    parts = [(title, lines) for title, lines in sections(report) if lines]
    written = [Section(f"part-{number}", title, bullets(lines)) for number, (title, lines) in enumerate(parts, start=1)]
    curves = (
        f"{figure_box(draw_series(details), 'Curves against time')}{legend(on_map=False)}"
        '<p class="caption">The band is what an attacker believes after the release under the prior with the largest '
        f"loss, “{escape(details.worst_priors[0])}”: the true value lies in it with a probability of 68 % if the prior "
        f"is right, at each time by itself.{details.drawn}</p>"
    )
    noise = (
        f"{figure_box(draw_noise(details), 'Noise of pairs of values')}"
        '<p class="caption">Each cell belongs to two times. Its colour is the square root of what the noise of the two '
        "has in common: on the diagonal, how far a value moves.</p>"
    )
    written.insert(2, Section("time", "The series against time", curves))
    written.append(Section("noise", "The shape of the noise", noise))
    return document(
        "jaxpriv: private report",
        _header(report),
        written,
        f"Made by jaxpriv {escape(report.jaxpriv_version)}. This page is complete in itself; nothing in it was or will "
        "be fetched or sent.",
        styles=("report.css",),
    )


def _header(report: SeriesReport) -> str:
    count = len(report.secrets)
    where = "At the protected time" if count == 1 else f"At each of the {count} protected times"
    banner = f'<p id="simulated" class="banner">{escape(SIMULATED)}</p>\n' if report.simulated else ""
    return (
        f'<header>\n<p id="prior" class="provenance">{escape(prior_sentence(report))}</p>\n{banner}'
        f'<h1 id="result">{where}, an attacker’s odds between any two values at most {given(report.radius)} apart '
        f"change by at most a factor of {odds_factor(report.odds.exact_factor)}, except with a probability of "
        f"{given(100 * report.odds.delta)} %; values were moved by {significant(report.noise)} (root mean square)."
        f"</h1>\n"
        f"<p>All sizes are in the unit of the column {escape(report.column)}.</p>\n"
        '<p class="private">Private: this page shows the true values. Keep it where the original is kept; only the '
        "folder <code>share</code> may leave your hands.</p>\n</header>"
    )


def _details(series: Series, made: PlannedSeries, released: ReleasedValues, report: SeriesReport) -> ReleaseDetails:
    axis = made.noise.axis
    believed, halfwidth = axis.believed_path(released.values)
    positions = sorted({position for secret in made.secrets.secrets for position in secret.positions})
    drawn = drawn_fixes(series.n_points, positions)
    rows = covariance_rows(len(drawn), np.searchsorted(drawn, positions).tolist())
    labels = tuple(one.label for one in report.priors)
    times = [[one.record.fix_time or one.record.time for one in secret.times] for secret in made.secrets.secrets]
    return ReleaseDetails(
        time_us=series.time_us[drawn],
        true_m=series.values[drawn, None],
        released_m=released.values[drawn, None],
        believed_m=believed[drawn, None],
        halfwidth_m=halfwidth[drawn, None],
        secrets=tuple(
            SecretDetails(
                label=numbers.label,
                first_us=parse_instant(instants[0]).us,
                last_us=parse_instant(instants[-1]).us,
                indices=tuple(np.searchsorted(drawn, secret.positions).tolist()),
                radius_m=report.radius,
                epsilon=numbers.epsilon,
                odds_factor=numbers.odds_factor,
                before_m=(numbers.before,),
                after_m=(numbers.after,),
                independent_epsilon=numbers.independent_epsilon,
            )
            for secret, numbers, instants in zip(made.secrets.secrets, report.secrets, times, strict=True)
        ),
        prior_labels=labels,
        worst_priors=(labels[report.worst_prior],),
        epsilons=np.array([one.epsilons for one in report.secrets]),
        covariance_rows=rows,
        covariances=axis.noise_block(drawn[rows])[None],
        axes=(report.column,),
        unit="",
        points=series.n_points,
    )
