"""`jaxpriv conceal`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from jaxpriv.cli.console import progress, reporting_errors, say
from jaxpriv.cli.quantities import parse_length


if TYPE_CHECKING:
    from jaxpriv.distribution.coupling import Kind


def conceal(
    groups_file: Annotated[
        Path,
        typer.Argument(
            metavar="GROUPS", help="Places or cells as .csv: lat, lon, and one column of counts for each group."
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write.")],
    kind: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="cost (least expected distance), minimax (least largest distance), entropic (hides the place too; "
            "with --scale) or independent (drawn without looking).",
        ),
    ] = "cost",
    scale: Annotated[
        str | None,
        typer.Option(
            metavar="DISTANCE",
            help="With entropic: places this far apart stay within 2 nats of each other. Larger hides more.",
        ),
    ] = None,
    target: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="What all groups publish: barycentre (least movement), mean, or a group's own law."
        ),
    ] = "barycentre",
    groups: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="The columns of the groups: day,night. By default all columns of numbers."),
    ] = None,
    confidence: Annotated[
        float, typer.Option(metavar="SHARE", help="Confidence of the level that is computed from the counts.")
    ] = 0.95,
    apply: Annotated[
        Path | None,
        typer.Option(metavar="CHECKINS.csv", help="Release these check-ins (lat, lon, and time if there is one)."),
    ] = None,
    group: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --apply: the group whose check-ins they are.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", metavar="", help="Replace DIR.")] = False,
    json: Annotated[bool, typer.Option("--json", metavar="", help="Print the audit as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", metavar="", help="Print nothing but errors.")] = False,
) -> None:
    """Publish check-ins so that nobody sees which group a person belongs to.

    Every group's places leave with one and the same law, moved as little as that takes. DIR/share holds the tables
    (whole numbers, drawn from exactly), their audit, a map and the released check-ins, and does not say whose they are;
    DIR/private says which place each check-in was taken for. The counts are part of the promise: take them from others
    than the people to protect. Exit codes: 0 done, 2 something in the input is wrong, 3 a solver failed.

    Example: `jaxpriv conceal cells.csv --groups day,night --out DIR --apply checkins.csv --group night`
    """
    with reporting_errors():
        scale_m = None if scale is None else parse_length("--scale", scale)
        with progress(quiet or json) as step:
            step("Loading")
            from jaxpriv.jobs.conceal import conceal as run

            report = run(
                groups_file,
                out,
                kind=cast("Kind", kind),
                scale_m=scale_m,
                target=target,
                groups=None if groups is None else tuple(groups.split(",")),
                confidence=confidence,
                checkins=apply,
                member_of=group,
                force=force,
                progress=step,
            )
        if json:
            typer.echo(report.to_json(), nl=False)
        elif not quiet:
            typer.echo(report.text(), nl=False)
        if not quiet:
            for note in report.notes():
                say(note)
            say(f"Written: {out}")
