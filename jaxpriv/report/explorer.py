"""The explorer: a page with a slider over ε, private, that opens without a network and without a script, too."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from jaxpriv.report.page.details import covariance_rows
from jaxpriv.report.page.document import Section, data_block, document, packaged
from jaxpriv.report.page.exploration import Exploration, Rung
from jaxpriv.report.page.explorer_curves import draw_profile, draw_trade
from jaxpriv.report.page.explorer_map import MAX_FIXES, draw_explorer_map
from jaxpriv.report.page.explorer_tables import ladder_table, secrets_table
from jaxpriv.report.page.legend import legend
from jaxpriv.report.page.live import Live
from jaxpriv.report.page.words import bullets, paragraph
from jaxpriv.report.plain import bet, bet_sentence, interval, place_sentence, with_unit
from jaxpriv.report.rounding import given, significant
from jaxpriv.report.text import prior_sentence


MAX_SECRETS = 12  # followed one by one: those of which most is told at the start
_SIMULATED = (
    "Nothing was released. The noisy path on this page is SIMULATED, an example and not a release; nothing was "
    "recorded, and no protection was used up."
)
_PRIVATE = (
    "Private: this page was made with the trace and shows it. Keep it where the original is kept, and share nothing of "
    "it."
)


def explorer_html(found: Exploration) -> str:
    """Write the explorer as one HTML file (private: it shows the true positions).

    All values are in the page; the script exchanges texts and shapes, computes nothing and loads nothing. Without it
    the page shows the figures at the start and the table of all values. Numbers that promise something are rounded to
    the safe side.
    """
    live = Live(found.start)
    report = found.rungs[found.start].report
    sections = [
        Section("explore", "Move the slider", _explore(found, live)),
        Section("secrets", "Each secret", secrets_table(found, _shown(found), live)),
        Section("ladder", "All values", ladder_table(found)),
        Section("method", "How these numbers were made", _method(found)),
        Section("limits", "What is not protected", bullets(found.limits)),
    ]
    warnings = [*found.left_out, *_warnings(found)]
    if warnings:
        sections.insert(1, Section("warnings", "Warnings", f'<div class="warnings">{bullets(warnings)}</div>'))
    header = (
        f'<header>\n<p id="prior" class="provenance">{escape(prior_sentence(report))}</p>\n'
        f'<p id="simulated" class="banner">{escape(_SIMULATED)}</p>\n'
        '<h1 id="result">What protecting this trace would cost, and what would stay uncertain</h1>\n'
        f'<p class="private">{escape(_PRIVATE)}</p>\n</header>'
    )
    spoken = [f"ε = {given(rung.epsilon)}: points move by {_moved(rung)}" for rung in found.rungs]
    data = data_block("explorer-data", live.content() | {"spoken": spoken})
    return document(
        "jaxpriv: explorer (private)",
        header,
        sections,
        f"Made by jaxpriv {escape(report.jaxpriv_version)}. This page is complete in itself; nothing in it was or will "
        f"be fetched or sent.{data}",
        styles=("report.css", "explorer.css"),
        script=packaged("explorer.js"),
    )


def _shown(found: Exploration) -> list[int]:
    secrets = found.rungs[found.start].details.secrets
    worst = sorted(range(len(secrets)), key=lambda i: -secrets[i].epsilon)[:MAX_SECRETS]
    return sorted(worst)


def _explore(found: Exploration, live: Live) -> str:
    rungs, details = found.rungs, found.rungs[0].details
    shown = _shown(found)
    fixes = [index for number in shown for index in details.secrets[number].indices]
    rows = covariance_rows(len(details.time_us), fixes, MAX_FIXES)
    now = [f"ε = {given(rung.epsilon)}" for rung in rungs]
    marks = "".join(f'<option value="{i}" label="{given(rung.epsilon)}"></option>' for i, rung in enumerate(rungs))
    control = (
        '<div id="control" hidden><label for="epsilon">How much the release may tell: '
        f"{live.text('epsilon-now', now, 'output', for_='epsilon')}</label>"
        '<div class="slide"><button type="button" id="safer">◂ safer</button>'
        f'<input type="range" id="epsilon" min="0" max="{len(rungs) - 1}" step="1" value="{found.start}" '
        f'list="epsilon-marks" aria-describedby="epsilon-help"><datalist id="epsilon-marks">{marks}</datalist>'
        '<button type="button" id="exact">more exact ▸</button></div></div>'
        f"<noscript><p>The slider needs a script, which is part of this page. Without it the figures are for "
        f"{escape(now[found.start])}, and the table has all values.</p></noscript>"
        '<p id="epsilon-help" class="caption">To the left an attacker learns less and points move farther; the arrow '
        "keys work, too.</p>"
    )
    facts = [
        ("Points would move by", live.text("fact-moved", [_moved(rung) for rung in rungs])),
        (
            "An attacker would bet at most",
            live.text("fact-odds", [bet(rung.report.odds.exact_factor) for rung in rungs]),
        ),
        ("A secret would be known (68 %) to no better than", live.text("fact-left", [_left(rung) for rung in rungs])),
        ("Independent noise would need", live.text("fact-independent", [_independent(rung) for rung in rungs])),
    ]
    written = "".join(f"<div><dt>{escape(name)}</dt><dd>{value}</dd></div>" for name, value in facts)
    words = live.text("words", [_words(rung) for rung in rungs], "p", role="status", class_="plain")
    figures = [
        (
            draw_profile(found, shown, rows, live),
            "How far each point would be moved (root mean square; the scale is logarithmic). Dashed: independent noise "
            "with the same promise.",
        ),
        (
            draw_trade(found, live),
            "How far points would be moved on the whole. The circle is where the slider stands. Dashed: independent "
            "noise with the same promise.",
        ),
    ]
    if details.on_map:
        example = (
            '<span class="mark">Simulated: not a release.</span> One example of the noise, made of the same random '
            "numbers for every ε. What leaves the frame is cut off. The blue areas hold a protected place with a "
            "probability of 68 % in each direction."
        )
        key = legend(on_map=True, released="simulated, not a release", believed=False)
        figures.insert(0, (draw_explorer_map(found, shown, rows, live) + key, example))
    drawn = "".join(f"<figure>{figure}<figcaption>{caption}</figcaption></figure>" for figure, caption in figures)
    return f'{control}<dl class="facts">{written}</dl>{words}<div class="figures">{drawn}</div>'


def _moved(rung: Rung) -> str:
    return with_unit(significant(rung.report.rms_noise_m), rung.details.unit)


def _left(rung: Rung) -> str:
    left = [min(secret.after_m[i] for secret in rung.details.secrets) for i in range(len(rung.details.axes))]
    return interval([min(left)], rung.details.axes[:1], rung.details.unit, lowest=True)


def _independent(rung: Rung) -> str:
    needed = rung.report.independent.rms_noise_m
    return "not known" if needed is None else with_unit(significant(needed), rung.details.unit)


def _words(rung: Rung) -> str:
    report, details = rung.report, rung.details
    worst = max(details.secrets, key=lambda secret: secret.epsilon)
    known = place_sentence(worst.before_m, worst.after_m, details.axes, details.unit)
    if len(details.secrets) > 1:
        known = f"Of the secret about which most is told: {known[0].lower()}{known[1:]}"
    most = with_unit(significant(report.largest_noise_m, 2, "up"), details.unit)
    return (
        f"At ε = {given(rung.epsilon)} points would move by {_moved(rung)} (root mean square), by {most} where they "
        f"move most. {known} "
        f"{bet_sentence(worst.radius_m, worst.odds_factor, report.odds.delta, details.unit)}"
    )


def _warnings(found: Exploration) -> list[str]:
    """Each warning once; with its values of ε where it does not hold for all."""
    held: dict[str, list[str]] = {}
    for rung in found.rungs:
        for warning in rung.report.warnings:
            held.setdefault(warning, []).append(given(rung.epsilon))
    return [
        warning if len(values) == len(found.rungs) else f"At ε = {_listed(values)}: {warning}"
        for warning, values in held.items()
    ]


def _listed(values: Sequence[str]) -> str:
    return ", ".join(values)


def _method(found: Exploration) -> str:
    report = found.rungs[found.start].report
    gaps = [rung.report.gap for rung in found.rungs if rung.report.gap is not None]
    worst = (
        f" The largest relative gap to the least possible noise is {significant(max(gaps), 2, 'up')}." if gaps else ""
    )
    sentences = [
        "For each value of ε the noise was designed and its ε certified as for a release; the odds, the half-widths "
        f"and the displacements are those that a release would have.{worst}",
        f"Effort: {report.effort}; order {given(report.order)}; δ = {given(report.odds.delta)}; radius "
        f"{with_unit(given(report.radius_m), report.unit)}. With more effort a release comes nearer to the least "
        "noise.",
        "The example is simulated from a fixed seed, with the same random numbers at each ε, so that what changes is "
        "the design. A release draws its own from the operating system.",
    ]
    return "".join(map(paragraph, sentences)) + bullets(report.odd, "What was odd in the file:")
