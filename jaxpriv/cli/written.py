"""What is said when a release has been written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import typer

from jaxpriv.cli.console import say


class _Report(Protocol):
    @property
    def simulated(self) -> bool: ...

    def to_json(self) -> str: ...


def say_release(
    report: _Report, text: str, out: Path, notes: Sequence[str], *, naive: bool, json: bool, quiet: bool
) -> None:
    """Say that a release was written, and its report: `text`, or JSON and the `notes` of the text beside it.

    `naive` is True when the time of a secret was given without an offset.
    """
    if not quiet:
        if naive:
            say("Note: --secret has no offset from UTC and was taken as UTC.")
        for sentence in notes if json else ():
            say(f"Note: {sentence}")
        say_written(out, simulated=report.simulated)
    show_report(report.to_json(), text, json=json, quiet=quiet)


def say_written(out: Path, *, simulated: bool = False) -> None:
    """Say where the halves of an output are, and that simulated output is no release."""
    if simulated:
        from jaxpriv.report.text import SIMULATED

        say(SIMULATED)
        say(f"Written: {out}/share and {out}/private.")
    else:
        say(f"Written: {out}/share (to share) and {out}/private (to keep). To check: jaxpriv verify {out}")


def show_report(content: str, text: str, *, json: bool, quiet: bool) -> None:
    """Print a report on stdout: its JSON when that is asked for, else its text unless `quiet`."""
    if json:
        typer.echo(content)
    elif not quiet:
        typer.echo("\n" + text, nl=False)
