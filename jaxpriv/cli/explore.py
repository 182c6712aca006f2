"""`jaxpriv explore`."""

from __future__ import annotations

from typing import Annotated

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
from jaxpriv.cli.protect_options import (
    CompoundOption,
    DeltaOption,
    EffortOption,
    EveryOption,
    ForceOption,
    HideEndsOption,
    MatchOption,
    OrderOption,
    OriginOption,
    OutOption,
    QuietOption,
    RadiusOption,
    ResolutionOption,
    SecretOption,
    TraceArgument,
)
from jaxpriv.cli.quantities import parse_duration, parse_length, parse_origin
from jaxpriv.cli.reading import (
    ColumnsOption,
    DuplicatesOption,
    StrictOption,
    TrackOption,
    WhoOption,
    reading_options,
)
from jaxpriv.errors import InputError


_PAGE = "The page"


def explore(
    trace: TraceArgument,
    radius: RadiusOption,
    out: OutOption,
    secret: SecretOption = None,
    match: MatchOption = None,
    compound: CompoundOption = False,
    every: EveryOption = False,
    hide_ends: HideEndsOption = None,
    epsilon: Annotated[
        float, typer.Option(metavar="NATS", help="Where the slider starts.", rich_help_panel=_PAGE)
    ] = 1.0,
    epsilons: Annotated[
        str | None,
        typer.Option(
            metavar="LIST", help="The values on the slider: 0.1,0.3,1,3; default: 0.05 to 10.", rich_help_panel=_PAGE
        ),
    ] = None,
    limit: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="How long to go on; values that are left then are left out, evenly.",
            rich_help_panel=_PAGE,
        ),
    ] = "3min",
    prior: PriorOption = None,
    prior_set: PriorSetOption = None,
    kernel: KernelOption = None,
    lengthscale: LengthscaleOption = None,
    sd: SdOption = None,
    nugget: NuggetOption = None,
    period: PeriodOption = None,
    effort: EffortOption = "low",
    track: TrackOption = None,
    columns: ColumnsOption = None,
    who: WhoOption = None,
    strict: StrictOption = False,
    duplicates: DuplicatesOption = "merge",
    order: OrderOption = 2.0,
    delta: DeltaOption = 0.01,
    resolution: ResolutionOption = None,
    origin: OriginOption = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make a page with a slider over epsilon: what protecting a trace would cost, and what would stay uncertain.

    Nothing is released and nothing is recorded: the page shows designs and a simulated example. It is made with the
    trace and shows it, so it is private: DIR/private/explorer.html, readable by you alone. Choose with it, then run
    `jaxpriv protect`. Exit codes as for protect.

    Example:

    `jaxpriv explore day.gpx --secret 2024-05-01T08:30:00Z --radius 200m --prior prior.json --out look`
    """
    with reporting_errors():
        where = {"--radius": radius, "--resolution": resolution or "0.5m"}
        lengths = {option: parse_length(option, text) for option, text in where.items()}
        near = None if match is None else parse_length("--match", match)
        ends = None if hide_ends is None else parse_length("--hide-ends", hide_ends)
        centre = None if origin is None else parse_origin("--origin", origin)
        reading = reading_options(columns, who, track, strict, duplicates)
        expected = read_prior(prior, prior_set, tuple(kernel or ()), lengthscale, sd, nugget, period)
        values = None if epsilons is None else _numbers("--epsilons", epsilons)
        seconds = parse_duration("--limit", limit)

        from jaxpriv.jobs.explore import LADDER, explore_file
        from jaxpriv.jobs.requests import SecretRequest
        from jaxpriv.jobs.target import Target
        from jaxpriv.traces.projection import LocalPlane

        target = Target(lengths["--radius"], epsilon, order, delta, lengths["--resolution"], effort=effort)
        with progress(quiet) as step:
            found = explore_file(
                trace,
                out,
                SecretRequest(tuple(secret or ()), near, compound, every, ends),
                target,
                expected,
                ladder=values or LADDER,
                reading=reading,
                origin=None if centre is None else LocalPlane(*centre),
                limit_s=seconds,
                force=force,
                progress=step,
            )
        if not quiet:
            for sentence in found.left_out:
                say(f"Note: {sentence}")
            say("Nothing was released or recorded. The page is private: it shows the trace.")
            typer.echo(f"Written: {out / 'private' / 'explorer.html'}")


def _numbers(option: str, text: str) -> list[float]:
    """Read numbers with commas between them."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{option}: write numbers with commas between them, such as {option} 0.1,0.3,1,3") from None
