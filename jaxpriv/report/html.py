"""The report as a page: one file, private, that opens without a network."""

from __future__ import annotations

import math
from html import escape
from importlib import resources

from jaxpriv.report.page.cost import draw_cost
from jaxpriv.report.page.details import ReleaseDetails, SecretDetails
from jaxpriv.report.page.maps import CLOSE_UP_FIXES, draw_close_up, draw_map
from jaxpriv.report.page.noise import draw_noise
from jaxpriv.report.page.parameters import parameter_rows
from jaxpriv.report.page.series import draw_series
from jaxpriv.report.page.svg import BAND, BELIEVED, INK, RELEASED, TRUE, element, star
from jaxpriv.report.record import Report
from jaxpriv.report.rounding import given, significant
from jaxpriv.report.text import SIMULATED, asked_for, odds_factor, prior_sentence
from jaxpriv.traces.instants import format_instant


# Nothing may be fetched, run or sent, whatever a label holds.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'"
_MAX_CLOSE_UPS = 24


def report_html(report: Report, details: ReleaseDetails) -> str:
    """Write the report as one HTML file (private: it shows the true positions).

    It holds its own style and figures, names no external address and runs no script. Figures are SVG written by hand:
    smaller than a plotting library's and readable as text, without the addresses that those put into their files.
    Numbers that promise something are rounded to the safe side. Texts of the caller are escaped.
    """
    sections = [
        ("map", "The trace on a map", _map(details)),
        ("time", "The trace against time", _series(details)),
        ("secrets", "What an attacker can still conclude", _secrets(report, details)),
        ("losses", "The loss of each secret under each prior", _losses(report, details)),
        ("cost", "What it costs", _cost(report)),
        ("noise", "The shape of the noise", _noise(details)),
        ("limits", "What is not protected", _list(report.not_claimed)),
        ("certificate", "What exactly is certified", f"<p>{escape(report.guarantee)}</p>"),
        ("parameters", "Every parameter", _parameters(report, details)),
    ]
    if report.warnings:
        sections.insert(0, ("warnings", "Warnings", f'<div class="warnings">{_list(report.warnings)}</div>'))
    links = "".join(f'<a href="#{identity}">{escape(title)}</a>' for identity, title, _ in sections)
    body = "".join(
        f'<section id="{identity}"><h2>{escape(title)}</h2>\n{content}\n</section>\n'
        for identity, title, content in sections
    )
    style = resources.files("jaxpriv.report.page").joinpath("report.css").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="robots" content="noindex">\n'
        f"<title>jaxpriv: private report</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"{_header(report, details)}\n<nav>{links}</nav>\n<main>\n{body}</main>\n"
        f"<footer>Made by jaxpriv {escape(report.jaxpriv_version)}. This page is complete in itself; "
        "nothing in it was or will be fetched or sent.</footer>\n</body>\n</html>\n"
    )


def _header(report: Report, details: ReleaseDetails) -> str:
    count = len(details.secrets)
    where = "At the protected time" if count == 1 else f"At each of the {count} protected times"
    radii = {secret.radius_m for secret in details.secrets}
    apart = f"at most {given(max(radii))} m apart" if len(radii) == 1 else "no farther apart than its radius"
    banner = f'<p id="simulated" class="banner">{escape(SIMULATED)}</p>\n' if report.simulated else ""
    return (
        f'<header>\n<p id="prior" class="provenance">{escape(prior_sentence(report))}</p>\n{banner}'
        f'<h1 id="result">{where}, an attacker’s odds between any two places {apart} change by at most a factor of '
        f"{odds_factor(report.odds.exact_factor)}, except with a probability of {_percent(report.odds.delta)}; points "
        f"were displaced by {significant(report.rms_noise_m)} m (root mean square).</h1>\n"
        '<p class="private">Private: this page shows the true positions. Keep it where the original trace is kept; '
        "only the folder <code>share</code> may leave your hands.</p>\n</header>"
    )


def _percent(probability: float) -> str:
    return f"{given(100 * probability)} %"


def _map(details: ReleaseDetails) -> str:
    return (
        f'<div class="figure">{draw_map(details)}</div>{_legend(ring=True)}'
        '<p class="caption">All places inside a ring are at most the radius away from the true place: an attacker’s '
        "odds between each of them and the true place, and between any two places that are no farther apart than the "
        "radius, change by no more than stated above.</p>"
    )


def _series(details: ReleaseDetails) -> str:
    return (
        f'<div class="figure">{draw_series(details)}</div>{_legend(ring=False)}'
        f'<p class="caption">The band is what an attacker believes after the release under {_worst(details)}: the true '
        "value lies in it with a probability of 68 % if the prior is right, at each time and in each direction by "
        "itself.</p>"
    )


def _worst(details: ReleaseDetails) -> str:
    east, north = (_text(label) for label in details.worst_priors)
    if east == north:
        return f"the prior “{east}”, under which the loss is largest"
    return f"the priors “{east}” (east) and “{north}” (north), under which the losses are largest"


def _legend(ring: bool) -> str:
    def line(**attributes: object) -> str:
        return element("path", d="M2 8H46", fill="none", **attributes)

    entries = [
        (line(stroke=TRUE, stroke_width=5, stroke_linecap="round"), "true (known to you only)"),
        (
            line(stroke=RELEASED, stroke_width=1.5)
            + element("circle", cx=24, cy=8, r=3, fill="#fff", stroke=RELEASED, stroke_width=1.5),
            "released",
        ),
        (line(stroke=BELIEVED, stroke_width=2, stroke_dasharray="5 4"), "an attacker’s best guess afterwards"),
        (
            element("ellipse" if ring else "rect", **_patch(ring), fill=BAND, fill_opacity=0.35, stroke=BELIEVED),
            "68 % in each direction around it",
        ),
    ]
    if ring:
        entries += [
            (star(24, 8, 8, fill=INK), "protected place"),
            (
                element(
                    "circle", cx=24, cy=8, r=7, fill="none", stroke=INK, stroke_width=1.4, stroke_dasharray="7 3 1.5 3"
                ),
                "its radius, to scale",
            ),
        ]
    else:
        entries.append((line(stroke=INK, stroke_dasharray="7 3 1.5 3"), "protected time"))
    items = "".join(
        f'<li><svg viewBox="0 0 48 16" aria-hidden="true">{mark}</svg>{name}</li>' for mark, name in entries
    )
    return f'<ul class="legend">{items}</ul>'


def _patch(ring: bool) -> dict[str, float]:
    return {"cx": 24, "cy": 8, "rx": 14, "ry": 7} if ring else {"x": 2, "y": 2, "width": 44, "height": 12}


def _secrets(report: Report, details: ReleaseDetails) -> str:
    articles = "".join(_secret(report, details, i, secret) for i, secret in enumerate(details.secrets))
    return (
        f'<p class="caption">Each close-up shows a protected place with up to {CLOSE_UP_FIXES} fixes before and after '
        f"it, marked as on the map.</p>{articles}"
    )


def _secret(report: Report, details: ReleaseDetails, index: int, secret: SecretDetails) -> str:
    radius, delta = given(secret.radius_m), _percent(report.odds.delta)
    lines = [
        f"Odds between any two places at most {radius} m apart change by at most a factor of "
        f"<strong>{odds_factor(secret.odds_factor)}</strong>, except with a probability of {delta}.",
        f"Asked which of two equally likely places {radius} m apart it was, the attacker’s best guess is right at most "
        f"{_best_guess(secret.epsilon, report.order)} % of the time; 50 % is a coin toss.",
        f"Before the release the attacker knew the place to ±{significant(secret.before_m[0])} m east and "
        f"±{significant(secret.before_m[1])} m north; afterwards to "
        f"<strong>±{significant(secret.after_m[0], 3, 'down')} m</strong> and "
        f"<strong>±{significant(secret.after_m[1], 3, 'down')} m</strong> (68 % in each direction; under the "
        "worst prior).",
        f"ε = {significant(secret.epsilon, 3, 'up')} nats at order {given(report.order)}.",
    ]
    if secret.independent_epsilon is not None:
        lines.append(
            "Independent noise of the same size would have "
            f"ε = {significant(secret.independent_epsilon)} for this secret."
        )
    items = "".join(f"<li>{line}</li>" for line in lines)
    picture = draw_close_up(details, index) if index < _MAX_CLOSE_UPS else "<span></span>"
    fixes = len(secret.indices)
    kind = "a place between two fixes" if fixes == 0 else "one fix" if fixes == 1 else f"{fixes} fixes together"
    return (
        f'<article class="secret" id="secret-{index + 1}">{picture}<div><h3>{index + 1}. {_text(secret.label)}</h3>'
        f'<p class="note">{escape(_span(secret))} UTC, {kind}, radius {radius} m</p><ul>{items}</ul></div></article>'
    )


def _span(secret: SecretDetails) -> str:
    first, last = (format_instant(us).rstrip("Z").replace("T", " ") for us in (secret.first_us, secret.last_us))
    return first if first == last else f"{first} to {last}"


def _best_guess(epsilon: float, order: float) -> str:
    """Φ(μ/2) in percent with μ² = 2ε/λ, rounded up."""
    if math.isinf(epsilon):
        return "100"
    half = math.sqrt(2 * epsilon / order) / 2
    chance = 100 * (1 - math.erfc(half / math.sqrt(2)) / 2)
    return f"{min(100, math.ceil(chance + 1e-9))}"


def _losses(report: Report, details: ReleaseDetails) -> str:
    values = details.epsilons.tolist()
    secrets = [f"{i}. {_text(secret.label)}" for i, secret in enumerate(details.secrets, start=1)]
    priors = [_text(label) for label in details.prior_labels]
    down = len(priors) > max(len(secrets), 4)
    columns, rows = (secrets, priors) if down else (priors, secrets)
    head = "".join(f'<th scope="col" class="number">{name}</th>' for name in columns)
    body = []
    for i, name in enumerate(rows):
        cells = []
        for j in range(len(columns)):
            secret, prior = (j, i) if down else (i, j)
            value = values[secret][prior]
            worst = value == max(values[secret])
            mark = '<td class="number worst">▲ ' if worst else '<td class="number">'
            cells.append(f"{mark}{significant(value, 3, 'up')}</td>")
        body.append(f'<tr><th scope="row">{name}</th>{"".join(cells)}</tr>')
    return (
        f'<p class="caption lead">ε in nats at order {given(report.order)}, certified and rounded up; ▲ marks the '
        f"worst prior of each secret. Asked for: {asked_for(report)}.</p>"
        '<div class="wide"><table id="loss-table"><thead><tr><th scope="col">'
        f"{'prior' if down else 'secret'}</th>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
        '<p class="caption">Each secret is protected by itself, not all of them jointly.</p>'
    )


def _cost(report: Report) -> str:
    independent = report.independent
    rows = [
        ("Points were displaced by (root mean square, grid included)", f"{significant(report.rms_noise_m)} m"),
        ("at the point that moves least", f"{significant(report.smallest_noise_m, 2, 'down')} m"),
        ("at the point that moves most", f"{significant(report.largest_noise_m, 2, 'up')} m"),
    ]
    if report.rms_lower_bound_m is not None and report.gap is not None:
        rows += [
            (
                "No Gaussian noise with the same promise and floor can do with less than",
                f"{significant(report.rms_lower_bound_m, 3, 'down')} m",
            ),
            ("Gap between the two (of the variance, relative)", significant(report.gap, 2, "up")),
        ]
    if independent.rms_noise_m is not None:
        rows.append(
            ("Independent noise at every point would need, for the same ε", f"{significant(independent.rms_noise_m)} m")
        )
    if independent.epsilon is not None:
        rows += [
            ("Independent noise of the same size would have ε", significant(independent.epsilon)),
            ("and could change odds by a factor of", odds_factor(independent.exact_factor)),
        ]
    table = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="number">{escape(value)}</td></tr>' for name, value in rows
    )
    figure = draw_cost(report.rms_lower_bound_m, report.rms_noise_m, independent.rms_noise_m)
    return f'<div class="figure">{figure}</div><table id="cost-table"><tbody>{table}</tbody></table>'


def _noise(details: ReleaseDetails) -> str:
    k, n = len(details.covariance_rows), len(details.time_us)
    shown = "at every fix" if k == n else f"at {k} of the {n} fixes"
    return (
        f'<div class="figure">{draw_noise(details)}</div>'
        f'<p class="caption">Each cell belongs to two fixes ({shown}). Its colour is the square root of what the noise '
        "of the two has in common: on the diagonal, how far a point moves (standard deviation). Blue off the diagonal "
        "is noise that moves both points the same way, which an attacker cannot average away; orange moves them in "
        "opposite directions.</p>"
    )


def _parameters(report: Report, details: ReleaseDetails) -> str:
    rows = [*parameter_rows(report), ("worst_priors", ", ".join(details.worst_priors))]
    rows += [(f"secrets.{i}.label", secret.label) for i, secret in enumerate(details.secrets)]
    rows += [(f"secrets.{i}.radius_m", given(secret.radius_m)) for i, secret in enumerate(details.secrets)]
    body = "".join(f'<tr><th scope="row">{_text(name)}</th><td>{_text(value)}</td></tr>' for name, value in rows)
    return (
        f"{_list(report.cleaning, 'What was done to the file: ')}"
        '<p class="note">Names ending in _m are metres, in _s seconds; ε values are nats. The same values, for '
        "programs, are in report.json.</p>"
        f'<table id="parameter-table"><tbody>{body}</tbody></table>'
    )


def _list(sentences: tuple[str, ...], lead: str = "") -> str:
    items = "".join(f"<li>{_text(sentence)}</li>" for sentence in sentences)
    return f"{f'<p>{lead}</p>' if lead else ''}<ul>{items}</ul>" if sentences else ""


def _text(value: str) -> str:
    """Escape a text of the caller, and keep its writing direction to itself."""
    return f"<bdi>{escape(value)}</bdi>"
