"""What an attacker can still conclude about each secret: in plain words first, then in figures."""

from __future__ import annotations

from html import escape

from jaxpriv.report.page.details import ReleaseDetails, SecretDetails
from jaxpriv.report.page.maps import CLOSE_UP_FIXES, draw_close_up
from jaxpriv.report.page.words import paragraph, percent, text, wide
from jaxpriv.report.plain import best_guess, bet_sentence, odds_factor, place_sentence, with_unit
from jaxpriv.report.record import Report
from jaxpriv.report.rounding import given, significant
from jaxpriv.report.text import asked_for
from jaxpriv.report.together import alone_words, counted, seen_by_all
from jaxpriv.traces.instants import format_instant


_MAX_CLOSE_UPS = 24


def secrets(report: Report, details: ReleaseDetails) -> str:
    """Write an article for each secret."""
    articles = "".join(_secret(report, details, i, secret) for i, secret in enumerate(details.secrets))
    shown = (
        f'<p class="caption">Each close-up shows a protected place with up to {CLOSE_UP_FIXES} fixes before and after '
        "it, marked as on the map.</p>"
    )
    return f"{shown if details.on_map else ''}{articles}"


def _secret(report: Report, details: ReleaseDetails, index: int, secret: SecretDetails) -> str:
    unit, delta = details.unit, report.odds.delta
    radius, what = escape(with_unit(given(secret.radius_m), unit)), "places" if details.on_map else "values"
    lines = [
        f"Odds between any two {what} at most {radius} apart change by at most a factor of "
        f"<strong>{odds_factor(secret.odds_factor)}</strong>, except with a probability of {percent(delta)}.",
        f"Asked which of two equally likely {what} {radius} apart it was, the attacker’s best guess is right at most "
        f"{best_guess(secret.epsilon, report.order)} % of the time; 50 % is a coin toss.",
        f"ε = {significant(secret.epsilon, 3, 'up')} nats at order {given(report.order)}.",
    ]
    if secret.independent_epsilon is not None:
        lines.append(
            "Independent noise of the same size would have "
            f"ε = {significant(secret.independent_epsilon)} for this secret."
        )
    items = "".join(f"<li>{line}</li>" for line in lines)
    picture = draw_close_up(details, index) if details.on_map and index < _MAX_CLOSE_UPS else "<span></span>"
    fixes = len(secret.indices)
    kind = f"{what[:-1]} between two fixes" if fixes == 0 else "one fix" if fixes == 1 else f"{fixes} fixes together"
    kind = f"a {kind}" if fixes == 0 else kind
    best_known = " Of the fixes together, this is about the one that is known best." if fixes > 1 else ""
    seen = seen_by_all(report, secret.label, secret.epsilon, secret.odds_factor, secret.before_m, secret.after_m)
    plain = [
        place_sentence(secret.before_m, seen.after_m, details.axes, unit, counted(report)) + best_known,
        bet_sentence(secret.radius_m, seen.odds_factor, delta, unit, counted(report)),
    ]
    alone = alone_words(report)
    return (
        f'<article class="secret" id="secret-{index + 1}" aria-labelledby="secret-{index + 1}-title">{picture}<div>'
        f'<h3 id="secret-{index + 1}-title">{index + 1}. {text(secret.label)}</h3>'
        f'<p class="note">{escape(_span(secret))} UTC, {kind}, radius {radius}</p>'
        f"{''.join(paragraph(sentence, 'plain') for sentence in plain)}"
        f"{paragraph(alone, 'alone') if alone else ''}<ul>{items}</ul></div></article>"
    )


def _span(secret: SecretDetails) -> str:
    first, last = (format_instant(us).rstrip("Z").replace("T", " ") for us in (secret.first_us, secret.last_us))
    return first if first == last else f"{first} to {last}"


def losses(report: Report, details: ReleaseDetails) -> str:
    """Write the table of the certified losses, secrets by priors, the longer side downwards."""
    values = details.epsilons.tolist()
    named = [f"{i}. {text(secret.label)}" for i, secret in enumerate(details.secrets, start=1)]
    priors = [text(label) for label in details.prior_labels]
    down = len(priors) > max(len(named), 4)
    columns, rows = (named, priors) if down else (priors, named)
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
    table = (
        '<table id="loss-table"><caption>Loss of each secret under each prior</caption><thead><tr><th scope="col">'
        f"{'prior' if down else 'secret'}</th>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    )
    alone = f"{alone_words(report)} " if alone_words(report) else ""
    return (
        f'<p class="caption lead">{alone}ε in nats at order {given(report.order)}, certified and rounded up; '
        f"▲ marks the worst prior of each secret. Asked for: {escape(asked_for(report))}.</p>"
        f"{wide(table, 'Table of losses')}"
        '<p class="caption">Each secret is protected by itself, not all of them jointly.</p>'
    )
