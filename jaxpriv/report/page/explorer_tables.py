"""Tables of the explorer: the secrets at the slider's ε, and all values of ε."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jaxpriv.report.page.exploration import Exploration, Rung
from jaxpriv.report.page.live import Live
from jaxpriv.report.page.svg import BELIEVED, TRUE
from jaxpriv.report.page.words import paragraph, percent, text, wide
from jaxpriv.report.plain import best_guess, bet, interval, with_unit
from jaxpriv.report.rounding import given, significant


_BAR = 120.0


def secrets_table(found: Exploration, shown: Sequence[int], live: Live) -> str:
    """Write for each of the secrets `shown` what is known before and after, with bars to scale."""
    rungs, details = found.rungs, found.rungs[0].details
    widest = max(max(secret.before_m) for rung in rungs for secret in rung.details.secrets)
    rows = []
    for number in shown:
        each = [rung.details.secrets[number] for rung in rungs]
        name = f"secret-{number + 1}"
        # The prior that leaves least afterwards may be another one at another ε.
        before = [interval(one.before_m, details.axes, details.unit) for one in each]
        after = [interval(one.after_m, details.axes, details.unit, lowest=True) for one in each]
        guesses = [f"{best_guess(one.epsilon, rung.report.order)} %" for one, rung in zip(each, rungs, strict=True)]
        lengths = [max(_BAR * min(one.after_m) / widest, 1.0) for one in each]
        earlier = [_BAR * min(one.before_m) / widest for one in each]
        bar = (
            f'<svg class="bar" viewBox="0 0 {_BAR:g} 20" aria-hidden="true">'
            + live.element("rect", f"{name}-before-bar", {"width": earlier}, x=0, y=2, height=7, fill=TRUE)
            + live.element("rect", f"{name}-bar", {"width": lengths}, x=0, y=11, height=7, fill=BELIEVED)
            + "</svg>"
        )
        cells = [
            live.text(f"{name}-before", before, "td", class_="number"),
            live.text(f"{name}-after", after, "td", class_="number"),
            f"<td>{bar}</td>",
            live.text(f"{name}-odds", [bet(one.odds_factor) for one in each], "td", class_="number"),
            live.text(f"{name}-guess", guesses, "td", class_="number"),
        ]
        label = details.secrets[number].label
        rows.append(f'<tr id="{name}"><th scope="row">{number + 1}. {text(label)}</th>{"".join(cells)}</tr>')
    apart = with_unit(given(details.secrets[0].radius_m), details.unit)
    what = "places" if details.on_map else "values"
    now = live.text("secrets-now", [f"ε = {given(rung.epsilon)}" for rung in rungs])
    head = _head(
        ["secret", "known before (68 %)", "afterwards to no better than", "before (grey), afterwards (blue)",
         "they would bet at most", "best guess right at most"]
    )  # fmt: skip
    table = (
        f'<table id="secrets-table"><caption>Each secret before and after</caption>{head}<tbody>{"".join(rows)}</tbody>'
        "</table>"
    )
    left = len(details.secrets) - len(shown)
    more = f"The {len(shown)} of {len(details.secrets)} secrets are shown of which most is told." if left else ""
    return (
        f"<p>At {now}. Bets and guesses are about two {what} {apart} apart that were suspected equally; bets hold "
        f"except with a probability of {percent(found.rungs[0].report.odds.delta)}.</p>"
        f"{paragraph(more) if more else ''}"
        f"{wide(table, 'Table of secrets')}"
    )


def ladder_table(found: Exploration) -> str:
    """Write a row for each ε."""
    unit = found.rungs[0].details.unit

    def least(rung: Rung) -> str:
        return interval([min(min(one.after_m) for one in rung.details.secrets)], ("",), unit, lowest=True)

    def length(value: float | None) -> str:
        return "not known" if value is None else with_unit(significant(value), unit)

    def bound(rung: Rung) -> str:
        lower = rung.report.rms_lower_bound_m
        return "not known" if lower is None else with_unit(significant(lower, 3, "down"), unit)

    columns: list[tuple[str, Callable[[Rung], str]]] = [
        ("points would move by (root mean square)", lambda rung: length(rung.report.rms_noise_m)),
        ("no Gaussian noise does with less than", bound),
        ("independent noise would need", lambda rung: length(rung.report.independent.rms_noise_m)),
        ("they would bet at most", lambda rung: bet(rung.report.odds.exact_factor)),
        ("best guess right at most", lambda rung: f"{best_guess(rung.report.epsilon, rung.report.order)} %"),
        ("a secret is known to no better than", least),
    ]
    rows = []
    for i, rung in enumerate(found.rungs):
        cells = "".join(f'<td class="number">{text(write(rung))}</td>' for _, write in columns)
        rows.append(f'<tr id="rung-{i + 1}"><th scope="row">{given(rung.epsilon)}</th>{cells}</tr>')
    head = _head(["ε (nats)", *(name for name, _ in columns)])
    table = f'<table id="ladder-table"><caption>All values of ε</caption>{head}<tbody>{"".join(rows)}</tbody></table>'
    return f"{wide(table, 'Table of all values of ε')}" + paragraph(
        "Of several secrets and directions, the worst. Rows may be copied into a spreadsheet; they are private, too.",
        "caption",
    )


def _head(names: Sequence[str]) -> str:
    cells = "".join(f'<th scope="col"{" class=number" if i else ""}>{name}</th>' for i, name in enumerate(names))
    return f"<thead><tr>{cells}</tr></thead>"
