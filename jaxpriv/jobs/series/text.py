"""The report of a series as text, in the unit of its column."""

from __future__ import annotations

from jaxpriv.jobs.series.record import SeriesReport
from jaxpriv.report.layout import document, section, span, wrapped
from jaxpriv.report.plain import odds_factor
from jaxpriv.report.rounding import given, significant
from jaxpriv.report.text import SIMULATED


_LISTED = 12


def series_text(report: SeriesReport) -> str:
    """Write the report: the prior, the promise, its price, the numbers, and what is not promised."""
    blocks = [wrapped(prior_sentence(report)), wrapped(f"All sizes are in the unit of the column {report.column}.")]
    if report.simulated:
        blocks.append(wrapped(SIMULATED))
    blocks += [section(title, lines) for title, lines in sections(report)]
    return document(blocks)


def sections(report: SeriesReport) -> list[tuple[str, list[str]]]:
    """The parts of the report after its first sentences: titles and their sentences; those of empty parts are none."""
    return [
        ("What is protected", _protected(report)),
        ("What is promised", _promised(report)),
        ("Each secret by itself", _each(report)),
        ("What exactly is certified", [report.guarantee]),
        ("What it costs", _costs(report)),
        ("Warnings", list(report.warnings)),
        ("What is not promised", list(report.not_claimed)),
        ("What was done to the file", _file(report)),
        ("Numbers", _numbers(report)),
    ]


def prior_sentence(report: SeriesReport) -> str:
    """Say where the prior came from, what is in it, and what follows from that."""
    kernels = " and ".join(dict.fromkeys(one.kernel for one in report.priors))
    count = len(report.priors)
    what = (
        f"Prior: {report.prior_source} ({f'{count} priors, ' if count > 1 else ''}{kernels} "
        f"kernel{'s' if ' and ' in kernels else ''}, "
        f"length scale {span([one.lengthscale_s for one in report.priors])} s, standard deviation "
        f"{span([one.sd for one in report.priors])}, nugget {span([one.nugget for one in report.priors])}). What "
        f"follows holds for an attacker who believes {'any one of these priors' if count > 1 else 'this prior'}, "
    )
    if report.estimate:
        return what + "and only as far as what the series itself says about them is right."
    return what + "and only if it was chosen without looking at this series."


def _protected(report: SeriesReport) -> list[str]:
    count = len(report.secrets)
    named = report.understood or tuple(one.label for one in report.secrets)
    return [
        *([f"{count} secrets, each protected by itself:"] if count > 1 else []),
        *(text.replace("the fix ", "the value ").replace("fixes", "values") for text in named),
        f"Any two values at most {given(report.radius)} apart must stay hard to tell apart at "
        f"{'that time' if count == 1 else 'each of these times'}.",
    ]


def _promised(report: SeriesReport) -> list[str]:
    odds = report.odds
    one = len(report.secrets) == 1
    before = min(secret.before for secret in report.secrets)
    after = min(secret.after for secret in report.secrets)
    return [
        f"An attacker's odds between any two values at most {given(report.radius)} apart at "
        f"{'that time' if one else 'any one of these times'} change by at most a factor of "
        f"{odds_factor(odds.exact_factor)}, except with probability {given(odds.delta)} "
        f"(ε′ = {significant(odds.exact, 3, 'up')} nats, exact for Gaussian noise).",
        "In general terms (Theorem 3.1 of Meehan and Chaudhuri, 2021; Markov's inequality): by at most a factor of "
        f"{odds_factor(odds.theorem_factor)} (ε′ = {significant(odds.theorem, 3, 'up')}), except with probability "
        f"{given(odds.delta)}.",
        f"ε = {significant(report.epsilon, 3, 'up')} nats at order {given(report.order)}, certified and rounded up; "
        f"asked for: {_asked(report)}.",
        f"After the release, an attacker with {'any prior of the set' if len(report.priors) > 1 else 'this prior'} "
        f"knows the value at {'that time' if one else 'each of these times'} to no better than "
        f"±{significant(after, 3, 'down')} (68 % interval); before it, to ±{significant(before)}.",
        *(
            [f"Of {len(report.priors)} priors the worst is “{report.priors[report.worst_prior].label}”."]
            if len(report.priors) > 1
            else []
        ),
    ]


def _asked(report: SeriesReport) -> str:
    if report.budget_asked is not None:
        return f"the least ε for noise of {given(report.budget_asked)}"
    if report.uncertainty_asked is not None:
        return f"±{given(report.uncertainty_asked)} left under every prior"
    return "not known" if report.epsilon_asked is None else given(report.epsilon_asked)


def _each(report: SeriesReport) -> list[str]:
    if len(report.secrets) < 2:
        return []
    worst = sorted(report.secrets, key=lambda one: -one.epsilon)[:_LISTED]
    lines = [
        f"{one.label[0].upper()}{one.label[1:]}: ε = {significant(one.epsilon, 3, 'up')}, odds by at most "
        f"{odds_factor(one.odds_factor)}; left ±{significant(one.after, 3, 'down')}."
        for one in worst
    ]
    if len(worst) < len(report.secrets):
        lines.append(f"These are the {len(worst)} with the largest ε of {len(report.secrets)}; all are in report.json.")
    return lines


def _costs(report: SeriesReport) -> list[str]:
    lines = [
        f"Values are moved by {significant(report.noise)} (root mean square over the series, grid included): between "
        f"{significant(report.smallest_noise, 2, 'down')} where they move least and "
        f"{significant(report.largest_noise, 2, 'up')} where they move most."
    ]
    if report.noise_lower_bound is not None and report.gap is not None:
        lines.append(
            "No Gaussian noise that keeps the same promise with the same floor moves them by less than "
            f"{significant(report.noise_lower_bound, 3, 'down')} (relative gap in variance: "
            f"{significant(report.gap, 2, 'up')})."
        )
    if report.epsilon_lower_bound is not None and report.gap is not None:
        lines.append(
            "No Gaussian noise that moves them by as little, with the same floor, has an ε below "
            f"{significant(report.epsilon_lower_bound, 3, 'down')} (relative gap: {significant(report.gap, 2, 'up')})."
        )
    if report.independent_noise is not None:
        lines.append(
            f"Independent noise at every time would need {significant(report.independent_noise)} for the same ε."
        )
    if report.independent_epsilon is not None:
        lines.append(
            f"Independent noise of the same {significant(report.noise)} would have "
            f"ε = {significant(report.independent_epsilon)}."
        )
    return lines


def _file(report: SeriesReport) -> list[str]:
    return [
        f"{report.rows_read} rows were read and {report.rows_written} are written, at {report.points} distinct times.",
        *report.cleaning,
        f"Only times and the noisy {report.column} are written, with "
        f"{report.decimals} decimal{'' if report.decimals == 1 else 's'}, which follow from the declared resolution.",
    ]


def _numbers(report: SeriesReport) -> list[str]:
    return [
        f"order λ = {given(report.order)}; δ = {given(report.odds.delta)}; (ε, δ) curve of Gaussian differential "
        f"privacy: ε′ = {significant(report.odds.curve, 3, 'up')}",
        f"loss (largest gain in precision): {significant(report.loss, 3, 'up')} per squared unit",
        f"noise floor {significant(report.floor_sd, 3, 'down')} at every time; input resolution "
        f"{given(report.resolution)}",
        f"{report.method}; effort {report.effort}",
        f"output grid Δ = 2^{report.grid_exponent} = {given(report.grid)}; τ = "
        + ("none, simulated" if report.tau is None else significant(report.tau, 2, "up")),
        f"jaxpriv {report.jaxpriv_version}",
    ]
