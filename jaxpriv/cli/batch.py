"""`jaxpriv batch`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jaxpriv.cli.console import progress, reporting_errors, say
from jaxpriv.cli.prior_options import (
    KernelOption,
    LengthscaleOption,
    NuggetOption,
    PeriodOption,
    PriorOption,
    PriorSetOption,
    SdOption,
    read_prior,
)
from jaxpriv.cli.quantities import parse_bytes, parse_length
from jaxpriv.cli.reading import ColumnsOption, DuplicatesOption, StrictOption, reading_options


if TYPE_CHECKING:
    from jaxpriv.jobs.batch.summary import BatchSummary

_WHAT, _GOAL, _HOW = "What to protect", "The goal: --epsilon or --budget", "Details"
MIDDLE = "middle"


def batch(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="INPUT", help="A table of many traces (.parquet, .csv), or a folder of trace files.", exists=True
        ),
    ],
    radius: Annotated[
        str,
        typer.Option(
            metavar="LENGTH",
            help="Two places at most this far apart stay hard to tell apart: 200m.",
            rich_help_panel=_WHAT,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", help="The folder to write, or to go on with.", rich_help_panel=_WHAT),
    ],
    secret: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SECRET",
            help="middle (the fix in the middle of each trace; the default), or times as for protect: "
            '2024-05-01T08:30:00Z, "daily 22:00/06:00+02:00". A trace without such a time is refused. May be repeated.',
            rich_help_panel=_WHAT,
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(metavar="NATS", help="How much each release may tell; smaller is safer.", rich_help_panel=_GOAL),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="LENGTH",
            help="The least epsilon when points move by this much (root mean square): 50m.",
            rich_help_panel=_GOAL,
        ),
    ] = None,
    prior: PriorOption = None,
    prior_set: PriorSetOption = None,
    kernel: KernelOption = None,
    lengthscale: LengthscaleOption = None,
    sd: SdOption = None,
    nugget: NuggetOption = None,
    period: PeriodOption = None,
    resolution: Annotated[
        str,
        typer.Option(metavar="LENGTH", help="To what the positions are rounded.", rich_help_panel=_HOW),
    ] = "0.5m",
    columns: ColumnsOption = None,
    strict: StrictOption = False,
    duplicates: DuplicatesOption = "merge",
    workers: Annotated[
        int,
        typer.Option(metavar="NUMBER", help="Processes of this machine (with Dask).", min=1, rich_help_panel=_HOW),
    ] = 1,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Work on the machines of this Dask scheduler: tcp://host:8786. They must see DIR under the same path.",
            rich_help_panel=_HOW,
        ),
    ] = None,
    memory: Annotated[str, typer.Option(metavar="SIZE", help="Of each process, about.", rich_help_panel=_HOW)] = "2GB",
    simulate: Annotated[
        int | None,
        typer.Option(
            metavar="SEED",
            help="Draw reproducible noise instead of releases: NOT private, for studies.",
            min=0,
            rich_help_panel=_HOW,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", metavar="", help="Print the summary as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", metavar="", help="Print nothing but errors.")] = False,
) -> None:
    """Protect a time of every trace of a data set, which may be larger than memory.

    A table is cut into traces where its person or trip changes; without a column of either it is one trace. DIR/share
    holds Parquet files with a running number for each trace; DIR/private whose number it is, what is certified, and why
    traces were refused. A run that was ended goes on when it is started again. Exit codes: 0 all traces are released or
    listed as refused, 2 something in the input is wrong, 3 the target cannot be met by any trace.

    Example:

    `jaxpriv batch windows.parquet --radius 50m --budget 35m --kernel matern32 --lengthscale 60s --sd 100m --nugget 3m
    --out safe`
    """
    with reporting_errors():
        radius_m = parse_length("--radius", radius)
        budget_m = None if budget is None else parse_length("--budget", budget)
        resolution_m = parse_length("--resolution", resolution)
        limit = parse_bytes("--memory", memory)
        reading = reading_options(columns, None, None, strict, duplicates)
        expected = read_prior(prior, prior_set, tuple(kernel or ()), lengthscale, sd, nugget, period)
        words = tuple(secret or (MIDDLE,))
        if MIDDLE in words and len(words) > 1:
            from jaxpriv.errors import InputError

            raise InputError("--secret middle goes alone; leave it out, or the times")

        from jaxpriv.jobs.batch.part import BatchOptions
        from jaxpriv.jobs.batch.run import run_batch
        from jaxpriv.jobs.requests import SecretRequest
        from jaxpriv.jobs.target import Target

        target = Target(radius_m, epsilon, resolution_m=resolution_m, budget_m=budget_m)
        secrets = SecretRequest() if words == (MIDDLE,) else SecretRequest(words)
        with progress(quiet) as step:
            done = run_batch(
                data,
                out,
                BatchOptions(target, expected, secrets, simulate),
                reading=reading,
                memory=limit,
                scheduler=scheduler,
                workers=workers,
                progress=step,
            )
        _say_done(done, out, json=json, quiet=quiet)


def _say_done(done: BatchSummary, out: Path, *, json: bool, quiet: bool) -> None:
    if json:
        import json as writer

        typer.echo(writer.dumps(done.record(), ensure_ascii=False))
    if quiet or json:
        return
    if done.simulated:
        say("SIMULATED: the noise can be computed again from the seed. Not private; do not share.")
    if done.estimate:
        say("Note: the priors were fitted to the traces themselves: epsilon is an estimate, not a guarantee.")
    typer.echo(f"{done.traces} traces: {done.done} released, {done.refused} refused.")
    if done.epsilon is not None:
        typer.echo(f"Epsilon of each release: at most {done.epsilon:.4g} nats.")
    for reason, count in done.reasons.items():
        typer.echo(f"  {count} refused: {reason}")
    typer.echo(f"Written: {out}/share (to share) and {out}/private (to keep).")
    if done.done and not done.simulated:
        from jaxpriv.jobs.batch.summary import ANOTHER_RELEASE

        say(ANOTHER_RELEASE)
