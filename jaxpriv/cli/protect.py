"""`jaxpriv protect`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, get_args

import typer

from jaxpriv.cli.console import progress, reporting_errors, say
from jaxpriv.cli.quantities import parse_duration, parse_length, parse_origin
from jaxpriv.errors import InputError


_WHAT, _PRIOR, _HOW = "What to protect", "The prior: what an attacker expects", "Details"
Kernel = Literal["rbf", "matern12", "matern32", "matern52", "periodic"]


def protect(
    trace: Annotated[
        Path, typer.Argument(metavar="TRACE", help="A trace of one person: .csv (time, lat, lon) or .plt.")
    ],
    secret: Annotated[
        list[str],
        typer.Option(metavar="TIME", help="The sensitive time, such as 2024-05-01T08:30:00Z.", rich_help_panel=_WHAT),
    ],
    radius: Annotated[
        str,
        typer.Option(
            metavar="LENGTH",
            help="Two places at most this far apart stay hard to tell apart: 200m, 0.2km.",
            rich_help_panel=_WHAT,
        ),
    ],
    epsilon: Annotated[
        float,
        typer.Option(metavar="NATS", help="How much the release may tell; smaller is safer.", rich_help_panel=_WHAT),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write; made anew.", rich_help_panel=_WHAT)],
    kernel: Annotated[
        Kernel | None,
        typer.Option(
            metavar="KERNEL",
            help=f"How positions vary over time: {', '.join(get_args(Kernel))}.",
            rich_help_panel=_PRIOR,
        ),
    ] = None,
    lengthscale: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Over which time positions stay alike: 60s.", rich_help_panel=_PRIOR),
    ] = None,
    sd: Annotated[
        str | None,
        typer.Option(metavar="LENGTH", help="Standard deviation of each coordinate: 300m.", rich_help_panel=_PRIOR),
    ] = None,
    nugget: Annotated[
        str | None,
        typer.Option(metavar="LENGTH", help="Error of a single fix, as a deviation: 1m.", rich_help_panel=_PRIOR),
    ] = None,
    period: Annotated[
        str | None, typer.Option(metavar="DURATION", help="For the periodic kernel only: 1d.", rich_help_panel=_PRIOR)
    ] = None,
    simulate: Annotated[
        int | None,
        typer.Option(
            metavar="SEED", help="Draw reproducible noise: NOT private, for studies.", min=0, rich_help_panel=_HOW
        ),
    ] = None,
    order: Annotated[float, typer.Option(help="Rényi order of epsilon.", rich_help_panel=_HOW)] = 2.0,
    delta: Annotated[
        float, typer.Option(help="Probability for which the odds in the report may fail.", rich_help_panel=_HOW)
    ] = 0.01,
    resolution: Annotated[
        str, typer.Option(metavar="LENGTH", help="To what the positions of TRACE are rounded.", rich_help_panel=_HOW)
    ] = "0.5m",
    origin: Annotated[
        str | None,
        typer.Option(
            metavar="LAT,LON",
            help="Public origin of the local plane; default: the mean position rounded to 0.1 degree.",
            rich_help_panel=_HOW,
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", metavar="", help="Replace DIR, if jaxpriv wrote it.", rich_help_panel=_HOW)
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print the report as JSON.", rich_help_panel=_HOW)
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", metavar="", help="Print nothing but errors.", rich_help_panel=_HOW)
    ] = False,
) -> None:
    """Protect the place at one time of a trace, and write a sanitised trace of the same format.

    DIR/share holds what may be shared, DIR/private the report and the mechanism. Exit codes: 0 done, 2 something in
    the input is wrong, 3 no mechanism meets the target or its certificate failed; then nothing is written.

    Example:

    `jaxpriv protect day.csv --secret 2024-05-01T08:30:00Z --radius 200m --epsilon 1 --out safe --kernel matern32
    --lengthscale 30min --sd 3km --nugget 5m --simulate 1`
    """
    with reporting_errors():
        given = {"--kernel": kernel, "--lengthscale": lengthscale, "--sd": sd, "--nugget": nugget}
        missing = [name for name, value in given.items() if value is None]
        if kernel is None or lengthscale is None or sd is None or nugget is None:
            raise InputError(f"the prior is not complete: pass {', '.join(missing)} (see jaxpriv protect --help)")
        if simulate is None:
            raise InputError("pass --simulate SEED: this version draws simulated noise only, which is not private")
        lengths = {
            option: parse_length(option, text)
            for option, text in {"--radius": radius, "--sd": sd, "--nugget": nugget, "--resolution": resolution}.items()
        }
        scale = parse_duration("--lengthscale", lengthscale)
        cycle = None if period is None else parse_duration("--period", period)
        centre = None if origin is None else parse_origin("--origin", origin)

        from jaxpriv.jobs.prior_choice import PriorChoice
        from jaxpriv.jobs.protect import protect_file
        from jaxpriv.jobs.target import Target
        from jaxpriv.report.text import SIMULATED, report_text
        from jaxpriv.traces.projection import LocalPlane

        target = Target(lengths["--radius"], epsilon, order, delta, lengths["--resolution"])
        prior = PriorChoice(kernel, scale, lengths["--sd"], lengths["--nugget"], cycle)
        times, naive = _secret_times(secret)
        with progress(quiet) as step:
            done = protect_file(
                trace,
                out,
                times,
                target,
                prior,
                simulate_seed=simulate,
                origin=None if centre is None else LocalPlane(*centre),
                force=force,
                progress=step,
            )
        if not quiet:
            if naive:
                say("Note: --secret has no offset from UTC and was taken as UTC.")
            for sentence in done.report.cleaning:
                say(f"Note: {sentence}")
            say(SIMULATED)
            say(f"Written: {out}/share (to share) and {out}/private (to keep).")
        if json:
            typer.echo(done.report.to_json())
        elif not quiet:
            typer.echo("\n" + report_text(done.report), nl=False)


def _secret_times(texts: list[str]) -> tuple[list[int], bool]:
    from jaxpriv.traces.instants import parse_instant

    instants = []
    for text in texts:
        try:
            instants.append(parse_instant(text))
        except ValueError as problem:
            raise InputError(f"--secret {text}: {problem}; write times like 2024-05-01T08:30:00Z") from None
    return [instant.us for instant in instants], any(instant.naive for instant in instants)
