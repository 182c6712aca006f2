"""The report as text, for readers who are no mathematicians."""

from __future__ import annotations

import textwrap

from jaxpriv.report.record import PriorRecord, Report, SecretRecord
from jaxpriv.report.rounding import given, significant


_WIDTH = 92
_NO_LIMIT = 1e6

SIMULATED = (
    "SIMULATED, NOT PRIVATE: the noise comes from a seeded generator, and whoever guesses the seed can take it off. "
    "Use it for studies; do not share it as a protected trace."
)


def report_text(report: Report) -> str:
    """Write the report: the prior, the promise, its price, the numbers, and what is not promised."""
    blocks = [_wrap(prior_sentence(report.prior))]
    if report.simulated:
        blocks.append(_wrap(SIMULATED))
    blocks += [
        _section("What is protected", _protected(report)),
        _section("What is promised", _promised(report)),
        _section("What it costs", _costs(report)),
        _section("Warnings", list(report.warnings)),
        _section("What is not promised", list(report.not_claimed)),
        _section("What was done to the file", _file(report)),
        _section("Numbers", _numbers(report)),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def prior_sentence(prior: PriorRecord) -> str:
    """Say where the prior came from, and what it is."""
    period = f", period {given(prior.period_s)} s" if prior.period_s is not None else ""
    return (
        f"Prior: {prior.source} ({prior.kernel} kernel, length scale {given(prior.lengthscale_s)} s{period}, "
        f"standard deviation {given(prior.sd_m)} m, nugget {given(prior.nugget_m)} m). "
        "What follows holds for an attacker who believes this prior, and only if it was chosen without looking at "
        "this trace."
    )


def odds_factor(factor: float | None) -> str:
    """Say a factor on odds, rounded up; large ones are no protection and are called so."""
    if factor is None or factor > _NO_LIMIT:
        return "more than a million (no useful limit)"
    return significant(factor, 2, "up")


def _secret(secret: SecretRecord) -> str:
    if secret.fix_time is None:
        return f"The place at {secret.time}, a time between two fixes of the trace."
    if secret.fix_time == secret.time:
        return f"The place at {secret.time}, which is a fix of the trace."
    offset = significant(abs(secret.fix_offset_s or 0.0), 2)
    return f"The place at {secret.fix_time}, the fix nearest to {secret.time} ({offset} s away)."


def _protected(report: Report) -> list[str]:
    radius = given(report.radius_m)
    return [
        *(_secret(secret) for secret in report.secrets),
        f"Any two places at most {radius} m apart must stay hard to tell apart at that time. The {radius} m are the "
        "distance between the two places: for all places inside a circle, that circle's diameter.",
    ]


def _promised(report: Report) -> list[str]:
    odds, radius = report.odds, given(report.radius_m)
    delta = given(odds.delta)
    return [
        f"An attacker's odds between any two places at most {radius} m apart at that time change by at most a factor "
        f"of {odds_factor(odds.exact_factor)}, except with probability {delta} "
        f"(ε′ = {significant(odds.exact, 3, 'up')} nats, exact for Gaussian noise).",
        f"In general terms (Theorem 3.1 of Meehan and Chaudhuri, 2021; Markov's inequality): by at most a factor of "
        f"{odds_factor(odds.theorem_factor)} (ε′ = {significant(odds.theorem, 3, 'up')}), except with probability "
        f"{delta}.",
        f"ε = {significant(report.epsilon, 3, 'up')} nats at order {given(report.order)}, certified and rounded "
        f"up; asked for: {given(report.epsilon_asked)}.",
        "After the release, an attacker with this prior knows the place at that time to "
        f"±{significant(report.posterior_halfwidth_east_m, 3, 'down')} m east and "
        f"±{significant(report.posterior_halfwidth_north_m, 3, 'down')} m north (68 % intervals); before it, to "
        f"±{significant(report.prior_halfwidth_east_m)} m and ±{significant(report.prior_halfwidth_north_m)} m.",
    ]


def _costs(report: Report) -> list[str]:
    independent = report.independent
    lines = [
        f"Points are displaced by {significant(report.rms_noise_m)} m (root mean square over the trace, grid "
        f"included): between {significant(report.smallest_noise_m, 2, 'down')} m at the point that moves least and "
        f"{significant(report.largest_noise_m, 2, 'up')} m at the one that moves most."
    ]
    if report.rms_lower_bound_m is not None and report.gap is not None:
        lines.append(
            "No Gaussian noise that keeps the same promise with the same floor displaces points by less than "
            f"{significant(report.rms_lower_bound_m, 3, 'down')} m (relative gap in variance: "
            f"{significant(report.gap, 2, 'up')})."
        )
    if independent.rms_noise_m is not None:
        lines.append(
            f"Independent noise at every point would need {significant(independent.rms_noise_m)} m for the same ε."
        )
    if independent.epsilon is not None:
        lines.append(
            f"Independent noise of the same {significant(report.rms_noise_m)} m would have "
            f"ε = {significant(independent.epsilon)}: odds could change by a factor of "
            f"{odds_factor(independent.exact_factor)}."
        )
    return lines


def _file(report: Report) -> list[str]:
    return [
        f"{report.rows_read} rows were read and {report.rows_written} are written, at {report.points} distinct times.",
        *report.cleaning,
        "Only times and noisy positions are written; altitude, speed, names, comments and every other column are not.",
    ]


def _numbers(report: Report) -> list[str]:
    latitude, longitude = report.origin
    return [
        f"order {given(report.order)}; δ {given(report.odds.delta)}; ε east "
        f"{significant(report.epsilon_east, 3, 'up')}, north {significant(report.epsilon_north, 3, 'up')}; "
        f"(ε, δ) curve of Gaussian differential privacy: ε′ = {significant(report.odds.curve, 3, 'up')}",
        f"radius {given(report.radius_m)} m, designed for {given(report.plane_radius_m)} m because "
        "the flat map stretches distances by up to 0.03 %",
        f"noise floor {significant(report.floor_sd_m)} m at every point; input resolution "
        f"{given(report.resolution_m)} m; "
        f"output grid 2^{report.grid_exponent} m = {given(report.grid_m)} m",
        f"public origin of the plane: latitude {latitude}, longitude {longitude}",
        f"jaxpriv {report.jaxpriv_version}",
    ]


def _wrap(text: str, first: str = "", rest: str = "") -> str:
    return textwrap.fill(text, _WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def _section(title: str, lines: list[str]) -> str:
    if not lines:
        return ""
    return "\n".join([title, *(_wrap(line, "  * ", "    ") for line in lines)])
