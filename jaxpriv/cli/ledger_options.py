"""The options of `jaxpriv protect` for a ledger, and what is said about an answer from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jaxpriv.cli.console import say
from jaxpriv.cli.written import say_written, show_report
from jaxpriv.errors import InputError


if TYPE_CHECKING:
    from jaxpriv.jobs.ledger.answer import Answered
    from jaxpriv.jobs.ledger.protect import LedgerRequest
    from jaxpriv.report.record import Report

_LEDGER = "The ledger: all releases about a person together"

LedgerOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Keep account of all releases in this private file: what they tell together is certified before anything "
        "is published, and the same request is answered again at no cost.",
        rich_help_panel=_LEDGER,
    ),
]
PersonOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Whose trace it is, when the ledger is for several; persons are never combined.",
        rich_help_panel=_LEDGER,
    ),
]
LimitOption = Annotated[
    float | None,
    typer.Option(
        metavar="NATS",
        help="Refuse a release when the epsilon of all together would exceed this; a new ledger keeps the one of its "
        "first release for good.",
        rich_help_panel=_LEDGER,
    ),
]


def ledger_request(
    ledger: Path | None, person: str | None, limit: float | None, *, simulate: bool, dry_run: bool
) -> LedgerRequest | None:
    """Check the options against each other; None without a ledger."""
    if ledger is None:
        if person is not None or limit is not None:
            raise InputError("--person and --limit go with --ledger FILE")
        return None
    if simulate:
        raise InputError("--simulate draws no release, so there is nothing to keep account of; leave --ledger out")
    if dry_run:
        raise InputError("--dry-run keeps no account and says nothing about releases together; leave --ledger out")
    from jaxpriv.jobs.ledger.protect import LedgerRequest

    return LedgerRequest(ledger, person, limit)


def say_together(report: Report, *, quiet: bool) -> None:
    """Warn of a release that tells far more together with the earlier ones."""
    from jaxpriv.report.together import together_warning

    warning = together_warning(report.ledger)
    if warning is not None and not quiet:
        say(f"Warning: {warning}")


def say_answered(done: Answered, out: Path, *, json: bool, quiet: bool) -> None:
    """Say that an earlier release was written again, and its report."""
    if not quiet:
        say(f"Release number {done.record.number} again; nothing new is published, and nothing is spent.")
        for warning in done.warnings:
            say(f"Warning: {warning}")
        say_written(out)
    show_report(done.json, done.text, json=json, quiet=quiet)
