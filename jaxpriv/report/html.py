"""The report as a page: one file, private, that opens without a network."""

from __future__ import annotations

from html import escape

from jaxpriv.report.page.cost import cost
from jaxpriv.report.page.details import ReleaseDetails
from jaxpriv.report.page.document import Section, document
from jaxpriv.report.page.file import file
from jaxpriv.report.page.header import header
from jaxpriv.report.page.legend import legend
from jaxpriv.report.page.maps import draw_map
from jaxpriv.report.page.noise import draw_noise
from jaxpriv.report.page.parameters import parameters
from jaxpriv.report.page.releases import releases
from jaxpriv.report.page.secrets import losses, secrets
from jaxpriv.report.page.series import draw_series
from jaxpriv.report.page.words import bullets, figure_box, paragraph, text
from jaxpriv.report.record import Report


def report_html(report: Report, details: ReleaseDetails) -> str:
    """Write the report as one HTML file (private: it shows the true positions).

    It holds its own style and figures, names no external address and runs no script. Figures are SVG written by hand:
    smaller than a plotting library's and readable as text, without the addresses that those put into their files.
    Numbers that promise something are rounded to the safe side. Texts of the caller are escaped.
    """
    sections = [
        Section("secrets", "What an attacker can still conclude", secrets(report, details)),
        Section("time", "The trace against time", _series(details)),
        Section("losses", "The loss of each secret under each prior", losses(report, details)),
        Section("cost", "What it costs", cost(report, details)),
        Section("noise", "The shape of the noise", _noise(details)),
        Section("file", "What was odd in the file", file(report)),
        Section("releases", "Earlier releases", releases(report)),
        Section("limits", "What is not protected", bullets(report.not_claimed)),
        Section("certificate", "What exactly is certified", paragraph(report.guarantee)),
        Section("parameters", "Every parameter", parameters(report, details)),
    ]
    if details.on_map:
        sections.insert(1, Section("map", "The trace on a map", _map(details)))
    if report.warnings:
        sections.insert(0, Section("warnings", "Warnings", f'<div class="warnings">{bullets(report.warnings)}</div>'))
    return document(
        "jaxpriv: private report",
        header(report, details),
        sections,
        f"Made by jaxpriv {escape(report.jaxpriv_version)}. This page is complete in itself; nothing in it was or will "
        "be fetched or sent.",
        styles=("report.css",),
    )


def _map(details: ReleaseDetails) -> str:
    return (
        f"{figure_box(draw_map(details), 'Map')}{legend(on_map=True)}"
        '<p class="caption">All places inside a ring are at most the radius away from the true place: an attacker’s '
        "odds between each of them and the true place, and between any two places that are no farther apart than the "
        f"radius, change by no more than stated above.{details.drawn}</p>"
    )


def _series(details: ReleaseDetails) -> str:
    each = ", at each time and in each direction by itself" if len(details.axes) > 1 else ", at each time by itself"
    return (
        f"{figure_box(draw_series(details), 'Curves against time')}{legend(on_map=False)}"
        f'<p class="caption">The band is what an attacker believes after the release under {_worst(details)}: the true '
        f"value lies in it with a probability of 68 % if the prior is right{each}.{details.drawn}</p>"
    )


def _worst(details: ReleaseDetails) -> str:
    priors = [text(label) for label in details.worst_priors]
    if len(set(priors)) == 1:
        return f"the prior “{priors[0]}”, under which the loss is largest"
    named = " and ".join(f"“{prior}” ({escape(axis)})" for prior, axis in zip(priors, details.axes, strict=True))
    return f"the priors {named}, under which the losses are largest"


def _noise(details: ReleaseDetails) -> str:
    k, n = len(details.covariance_rows), len(details.time_us)
    shown = "at every fix" if k == n else f"at {k} of the {details.points or n} fixes"
    return (
        f"{figure_box(draw_noise(details), 'Noise of pairs of fixes')}"
        f'<p class="caption">Each cell belongs to two fixes ({shown}). Its colour is the square root of what the noise '
        "of the two has in common: on the diagonal, how far a point moves (standard deviation). Blue off the diagonal "
        "is noise that moves both points the same way, which an attacker cannot average away; orange moves them in "
        "opposite directions.</p>"
    )
