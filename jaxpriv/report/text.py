"""The report as text, for readers who are no mathematicians."""

from __future__ import annotations

from jaxpriv.report.layout import document, section, span, wrapped
from jaxpriv.report.plain import odds_factor
from jaxpriv.report.record import PriorRecord, Report, SecretNumbers, SecretRecord
from jaxpriv.report.rounding import given, significant
from jaxpriv.report.together import alone_words, plain_lines, together_lines, together_warning


_LISTED, _WORST = 12, 5  # secrets that are named one by one, and of more the worst

SIMULATED = (
    "SIMULATED, NOT PRIVATE: the noise comes from a seeded generator, and whoever guesses the seed can take it off. "
    "Use it for studies; do not share it as a protected trace."
)


def report_text(report: Report) -> str:
    """Write the report: the prior, the promise, its price, the numbers, and what is not promised."""
    warning = together_warning(report.ledger)
    together = (
        "" if report.ledger is None else section("Together with the earlier releases", together_lines(report.ledger))
    )
    again = report.ledger is not None and report.ledger.again
    blocks = [together if again else "", wrapped(prior_sentence(report))]
    if report.simulated:
        blocks.append(wrapped(SIMULATED))
    blocks += [
        "" if warning is None else wrapped(f"WARNING: {warning}"),
        section("What is protected", _protected(report)),
        section("In plain words", plain_lines(report)),
        section("What is promised", _promised(report)),
        section("Each secret by itself", _each(report)),
        "" if again else together,
        section("What exactly is certified", [report.guarantee, *_lattice(report)]),
        section("What it costs", _costs(report)),
        section("Warnings", [one for one in report.warnings if one != warning]),
        section("What is not promised", list(report.not_claimed)),
        section("What was done to the file", _file(report)),
        section("Numbers", _numbers(report)),
    ]
    return document(blocks)


def prior_sentence(report: Report) -> str:
    """Say where the prior came from, and what it is; of a set, what is in it."""
    members = [prior for axis in report.axes for prior in axis.priors]
    distinct = list(dict.fromkeys(members))
    first = f"Prior: {report.prior.source}"
    if len(distinct) == 1:
        what = f"{first} ({_prior(distinct[0])}). What follows holds for an attacker who believes this prior, "
        if not report.estimate:
            return what + "and only if it was chosen without looking at this trace."
    else:
        kernels = " and ".join(dict.fromkeys(one.kernel for one in members))
        counts = " and ".join(f"{len(axis.priors)} for {axis.name}" for axis in report.axes)
        what = (
            f"{first} ({counts}: {kernels} kernels, length scales {span([one.lengthscale_s for one in members])} s, "
            f"standard deviations {span([one.sd_m for one in members])} m, nuggets "
            f"{span([one.nugget_m for one in members])} m). What follows holds for an attacker who believes any one "
            "of these priors, "
        )
    if report.estimate:
        return what + "and only as far as what the trace itself says about them is right."
    return what + "and only if they were chosen without looking at this trace."


def _prior(prior: PriorRecord) -> str:
    period = f", period {given(prior.period_s)} s" if prior.period_s is not None else ""
    return (
        f"{prior.kernel} kernel, length scale {given(prior.lengthscale_s)} s{period}, standard deviation "
        f"{given(prior.sd_m)} m, nugget {given(prior.nugget_m)} m"
    )


def asked_for(report: Report) -> str:
    """Say the goal."""
    if report.budget_asked_m is not None:
        return f"the least ε for a displacement of {given(report.budget_asked_m)} m"
    if report.uncertainty_asked_m is not None:
        return f"±{given(report.uncertainty_asked_m)} m left in each coordinate under every prior"
    return "not known" if report.epsilon_asked is None else given(report.epsilon_asked)


def _secret(secret: SecretRecord) -> str:
    if secret.together:
        first, last = secret.together[0], secret.together[-1]
        return f"The places at the {len(secret.together)} fixes from {first} to {last}, together."
    if secret.fix_time is None:
        return f"The place at {secret.time}, a time between two fixes of the trace."
    if secret.fix_time == secret.time:
        return f"The place at {secret.time}, which is a fix of the trace."
    offset = significant(abs(secret.fix_offset_s or 0.0), 2)
    return f"The place at {secret.fix_time}, the fix nearest to {secret.time} ({offset} s away)."


def _protected(report: Report) -> list[str]:
    radius, count = given(report.radius_m), len(report.secrets)
    if count > 1 and report.understood:
        secrets = [f"{count} secrets, each protected by itself:", *report.understood]
    else:
        secrets = [_secret(secret) for secret in report.secrets]
    when = "at that time" if count == 1 else "at each of these times"
    return [
        *secrets,
        f"Any two places at most {radius} m apart must stay hard to tell apart {when}. The {radius} m are the "
        "distance between the two places: for all places inside a circle, that circle's diameter.",
    ]


def _promised(report: Report) -> list[str]:
    odds, radius = report.odds, given(report.radius_m)
    delta = given(odds.delta)
    one = len(report.secrets) == 1
    set_of = any(len(axis.priors) > 1 for axis in report.axes)
    when = "that time" if one else "any one of these times"
    return [
        *_alone(report),
        f"An attacker's odds between any two places at most {radius} m apart at {when} change by at most a factor "
        f"of {odds_factor(odds.exact_factor)}, except with probability {delta} "
        f"(ε′ = {significant(odds.exact, 3, 'up')} nats, exact for Gaussian noise).",
        f"In general terms (Theorem 3.1 of Meehan and Chaudhuri, 2021; Markov's inequality): by at most a factor of "
        f"{odds_factor(odds.theorem_factor)} (ε′ = {significant(odds.theorem, 3, 'up')}), except with probability "
        f"{delta}.",
        f"ε = {significant(report.epsilon, 3, 'up')} nats at order {given(report.order)}, certified and rounded "
        f"up; asked for: {asked_for(report)}.",
        f"After the release, an attacker with {'any prior of the set' if set_of else 'this prior'} knows the place at "
        f"{'that time' if one else 'each of these times'} to {'' if one and not set_of else 'no better than '}"
        f"±{significant(report.posterior_halfwidth_east_m, 3, 'down')} m east and "
        f"±{significant(report.posterior_halfwidth_north_m, 3, 'down')} m north (68 % intervals); before it, to "
        f"±{significant(report.prior_halfwidth_east_m)} m and ±{significant(report.prior_halfwidth_north_m)} m.",
        *(
            f"{axis.name.capitalize()}: of {len(axis.priors)} priors the worst is “{axis.labels[axis.worst_prior]}”."
            for axis in report.axes
            if len(axis.priors) > 1 and axis.labels
        ),
    ]


def _each(report: Report) -> list[str]:
    """Every secret where there are few; of many the five worst and the range."""
    numbers = report.by_secret
    if len(numbers) < 2:
        return []
    if len(numbers) <= _LISTED:
        return [*_alone(report), *(_numbers_of(one) for one in numbers)]
    values = [one.epsilon for one in numbers]
    left = [min(one.posterior_halfwidth_m) for one in numbers]
    worst = sorted(numbers, key=lambda one: -one.epsilon)[:_WORST]
    return [
        *_alone(report),
        f"ε between {significant(min(values), 3, 'up')} and {significant(max(values), 3, 'up')}; left after the "
        f"release between ±{significant(min(left), 3, 'down')} m and ±{significant(max(left), 3, 'down')} m in the "
        f"better known coordinate. The {_WORST} with the largest ε:",
        *(_numbers_of(one) for one in worst),
        "All of them are in report.json and report.html.",
    ]


def _alone(report: Report) -> list[str]:
    return [words] if (words := alone_words(report)) else []


def _numbers_of(one: SecretNumbers) -> str:
    left = " and ".join(f"±{significant(value, 3, 'down')} m" for value in one.posterior_halfwidth_m)
    label = one.label[0].upper() + one.label[1:]
    return (
        f"{label}: ε = {significant(one.epsilon, 3, 'up')}, odds by at most {odds_factor(one.odds_factor)}; left "
        f"{left} east and north."
    )


def _lattice(report: Report) -> list[str]:
    members = [claims for axis in report.axes for claims in axis.lattice]
    if len(members) <= 2:
        return []
    if all(members):
        return [
            f"That positions recorded in steps of {given(report.resolution_m)} m tell no more than said is claimed for "
            f"all {len(members)} priors: their nugget is at least twice that."
        ]
    return [
        f"That positions recorded in steps of {given(report.resolution_m)} m tell no more than said is claimed for "
        f"{sum(members)} of the {len(members)} priors, those whose nugget is at least twice that; under the others "
        "positions are taken as the prior has them, without steps."
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
    if report.epsilon_lower_bound is not None and report.gap is not None:
        lines.append(
            "No Gaussian noise that displaces points by as little, with the same floor, has an ε below "
            f"{significant(report.epsilon_lower_bound, 3, 'down')} (relative gap: {significant(report.gap, 2, 'up')})."
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
        *report.odd,
        "Only times and noisy positions are written; altitude, speed, names, comments and every other column are not.",
    ]


def _numbers(report: Report) -> list[str]:
    latitude, longitude = report.origin
    return [
        f"order λ = {given(report.order)}; δ = {given(report.odds.delta)}; ε east "
        f"{significant(report.epsilon_east, 3, 'up')}, north {significant(report.epsilon_north, 3, 'up')}; "
        f"(ε, δ) curve of Gaussian differential privacy: ε′ = {significant(report.odds.curve, 3, 'up')}",
        f"radius r = {given(report.radius_m)} m, designed for {given(report.plane_radius_m)} m because "
        "the flat map stretches distances by up to 0.03 %",
        "loss (largest gain in precision): "
        + ", ".join(f"{significant(axis.loss_per_m2, 3, 'up')} per m² {axis.name}" for axis in report.axes),
        f"noise floor {significant(report.floor_sd_m, 3, 'down')} m at every point; input resolution "
        f"{given(report.resolution_m)} m",
        *_method(report),
        f"output grid Δ = 2^{report.grid_exponent} m = {given(report.grid_m)} m; τ = "
        + ("none, simulated" if report.tau is None else significant(report.tau, 2, "up")),
        f"public origin of the plane: latitude {latitude}, longitude {longitude}",
        f"jaxpriv {report.jaxpriv_version}",
    ]


def _method(report: Report) -> list[str]:
    """How the noise was found, once for axes that say the same."""
    said: dict[str, list[str]] = {}
    for axis in report.axes:
        if axis.method:
            steps = "" if axis.steps is None else f" in {axis.steps} steps"
            said.setdefault(f"{axis.method}{steps}: {axis.outcome}", []).append(axis.name)
    return [f"method {' and '.join(names)}: {text}; effort {report.effort}" for text, names in said.items()]
