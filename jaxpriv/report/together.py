"""What the report says about a release together with the earlier ones in a ledger."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from jaxpriv.report.plain import bet_sentence, place_sentence
from jaxpriv.report.record import LedgerRecord, Report, TogetherRecord
from jaxpriv.report.rounding import given, significant


_WARNING = "The releases on record about this person together"
_LISTED, _WORST = 12, 5  # secrets that are named one by one, and of more the worst


def together_lines(record: LedgerRecord) -> list[str]:
    """Say which release it is, what all of them tell together, and of each secret what it was by one release alone."""
    who = f"This is release number {record.number} about this person in the ledger"
    lines = []
    if record.again:
        lines.append(
            f"Release number {record.number} again; nothing new is published, nothing is spent: the shared files hold "
            "the same published numbers as then."
        )
        who = f"The ledger holds {record.counted} release(s) about this person"
    elif record.counted == 1:
        who += ", the first one"
    else:
        who += f"; {record.counted - 1} earlier one(s) count"
    limit = "no limit was set" if record.limit is None else f"the limit is {given(record.limit)}"
    lines.append(
        f"{who}. All of them together were certified as one observation, never as a sum: ε = "
        f"{significant(record.epsilon, 3, 'up')} at most for any secret on record; {limit}."
    )
    secrets = record.secrets
    if len(secrets) > _LISTED:
        lines.append(f"The {_WORST} of {len(secrets)} secrets on record with the largest ε together:")
        secrets = tuple(sorted(secrets, key=lambda one: -one.together)[:_WORST])
    lines += [_one(one) for one in secrets]
    plain = "The plain words count all of them; what else is said" if record.counted > 1 else "What else is said"
    lines.append(f"{plain} is about this release by itself, for somebody who sees no other.")
    return lines


@dataclass(frozen=True)
class Seen:
    """What somebody who has all releases on record knows of a secret of one of them.

    `epsilon` in nats and `odds_factor` are those of all of them together, `after_m` half-widths of 68 % intervals, one
    for each axis.
    """

    epsilon: float
    odds_factor: float | None
    after_m: tuple[float, ...]


def seen_by_all(
    report: Report,
    label: str,
    epsilon: float,
    odds_factor: float | None,
    before_m: Sequence[float],
    after_m: Sequence[float],
) -> Seen:
    """What is known of a secret by all releases on record, from what is known of it by this one alone.

    A joint ε at order λ for places r apart is a gain in precision t of a secret of s fixes, with s t = 2ε/(λ r²). Its
    covariance S by the prior, each fix of variance v, becomes at least (S⁻¹ + tI)⁻¹, and that is at least
    S/(1 + t λ_max(S)), where λ_max(S) ≤ s v. So each half-width b is left at b/√(1 + 2εb²/(λr²)) or more, and of a set
    of priors the narrowest leaves least. A secret that the ledger does not know is as good as known.
    """
    if report.ledger is None:
        return Seen(epsilon, odds_factor, tuple(after_m))
    known = [one for one in report.ledger.secrets if one.label == label]
    if not known:
        return Seen(math.inf, None, (0.0,) * len(after_m))
    worst = max(known, key=lambda one: one.together)
    factor = None if worst.odds_factor is None or odds_factor is None else max(worst.odds_factor, odds_factor)
    gain = 2 * worst.together / (report.order * report.plane_radius_m**2) * (1 + 1e-12)
    left = []
    for axis, before, after in zip(report.axes, before_m, after_m, strict=True):
        narrow = before if len(axis.priors) == 1 else min(before, *(one.sd_m for one in axis.priors))
        left.append(min(after, narrow / math.sqrt(1 + gain * narrow**2)))
    return Seen(max(epsilon, worst.together), factor, tuple(left))


def counted(report: Report) -> int:
    """How many releases the plain words of a report are about: all on record, without a ledger this one."""
    return 1 if report.ledger is None else max(report.ledger.counted, 1)


def plain_lines(report: Report) -> list[str]:
    """Say in two sentences what is known of the secret about which most is told, for a reader without mathematics.

    They hold for somebody who has all releases on record.
    """
    if not report.by_secret:
        return []
    each = []
    for one in report.by_secret:
        before, after = one.prior_halfwidth_m, one.posterior_halfwidth_m
        each.append((before, seen_by_all(report, one.label, one.epsilon, one.odds_factor, before, after)))
    before, seen = max(each, key=lambda pair: pair[1].epsilon)
    names = tuple(axis.name for axis in report.axes)
    lead = "" if len(report.by_secret) == 1 else "About the secret of which most is told: "
    known = place_sentence(before, seen.after_m, names, report.unit, counted(report))
    return [
        (lead + known[0].lower() + known[1:]) if lead else known,
        bet_sentence(report.radius_m, seen.odds_factor, report.odds.delta, report.unit, counted(report)),
    ]


def alone_words(report: Report) -> str:
    """Words that come before what is promised by a release alone, where all on record tell more; else none."""
    alone = {one.label: one.epsilon for one in report.by_secret}
    if counted(report) > 1 and report.ledger is not None:
        for one in report.ledger.secrets:
            if one.label in alone and one.together > alone[one.label] * (1 + 1e-9):  # more than rounding
                return "Alone, for somebody who sees no other release:"
    return ""


def together_warning(record: LedgerRecord | None) -> str | None:
    """Say that all releases together tell more than twice what one of them alone tells of a secret on record."""
    more = [] if record is None else [one for one in record.secrets if one.together > 2 * one.alone]
    if record is None or record.counted < 2 or not more:
        return None
    worst = max(more, key=lambda one: one.together)
    return (
        f"{_WARNING} tell far more than one of them alone: ε = {significant(worst.together, 3, 'up')} for "
        f"{worst.label}, where release number {worst.release} alone has {significant(worst.alone, 3, 'up')}. Whoever "
        "sees all of them is bound by the larger value only."
    )


def with_ledger(report: Report, record: LedgerRecord) -> Report:
    """A report with what a ledger says now, and with its warning in front of all others, if there is one."""
    warning = together_warning(record)
    others = tuple(one for one in report.warnings if not one.startswith(_WARNING))
    return replace(report, ledger=record, warnings=others if warning is None else (warning, *others))


def _one(secret: TogetherRecord) -> str:
    label = secret.label[0].upper() + secret.label[1:]
    return (
        f"{label}: ε = {significant(secret.alone, 3, 'up')} by release number {secret.release} alone, "
        f"{significant(secret.together, 3, 'up')} by all of them together."
    )
