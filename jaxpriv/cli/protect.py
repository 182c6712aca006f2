"""`jaxpriv protect`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from jaxpriv.cli.columns import parse_columns
from jaxpriv.cli.console import progress, reporting_errors, say
from jaxpriv.cli.quantities import parse_duration, parse_length, parse_origin, parse_track
from jaxpriv.errors import InputError


if TYPE_CHECKING:
    from jaxpriv.jobs.requests import PriorRequest

_WHAT, _GOAL = "What to protect", "The goal: exactly one of --epsilon, --budget and --uncertainty"
_PRIOR, _HOW = "The prior: what an attacker expects", "Details"
PriorSet = Literal["default", "wide", "exact"]
EffortChoice = Literal["low", "normal", "high"]


def protect(
    trace: Annotated[
        Path,
        typer.Argument(metavar="TRACE", help="A trace of one person: .csv (time, lat, lon), .gpx, .plt and others."),
    ],
    radius: Annotated[
        str,
        typer.Option(
            metavar="LENGTH",
            help="Two places at most this far apart stay hard to tell apart: 200m, 0.2km.",
            rich_help_panel=_WHAT,
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write; made anew.", rich_help_panel=_WHAT)],
    secret: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SECRET",
            help="A sensitive time such as 2024-05-01T08:30:00Z, each fix of a window START/END of two times, or each "
            "fix near a place LAT,LON (with --match). May be repeated; each is protected by itself.",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    match: Annotated[
        str | None,
        typer.Option(metavar="LENGTH", help="How near to LAT,LON a fix counts: 150m.", rich_help_panel=_WHAT),
    ] = None,
    compound: Annotated[
        bool,
        typer.Option(
            "--compound",
            metavar="",
            help="Protect the fixes of each window or visit together, not each by itself.",
            rich_help_panel=_WHAT,
        ),
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", metavar="", help="Protect every fix, each by itself.", rich_help_panel=_WHAT)
    ] = False,
    hide_ends: Annotated[
        str | None,
        typer.Option(
            metavar="LENGTH",
            help="Protect both ends of the trace, until it is this far away: 500m.",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(metavar="NATS", help="How much the release may tell; smaller is safer.", rich_help_panel=_GOAL),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="LENGTH",
            help="The least epsilon when points move by this much (root mean square): 50m.",
            rich_help_panel=_GOAL,
        ),
    ] = None,
    uncertainty: Annotated[
        str | None,
        typer.Option(
            metavar="LENGTH",
            help="The least noise that leaves each coordinate of a secret uncertain by this much (half-width of the "
            "68 % interval): 200m.",
            rich_help_panel=_GOAL,
        ),
    ] = None,
    prior: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A prior made by jaxpriv fit, from other traces. Without it and without numbers, priors are fitted to "
            "TRACE itself: then all is an estimate, not a guarantee.",
            rich_help_panel=_PRIOR,
        ),
    ] = None,
    prior_set: Annotated[
        PriorSet | None,
        typer.Option(
            metavar="SET",
            help="The priors around the fits that must all be withstood: default (length scales halved and doubled), "
            "wide (times four, too) or exact (the best fit alone).",
            rich_help_panel=_PRIOR,
        ),
    ] = None,
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KERNEL",
            help="How positions vary over time: rbf, matern12, matern32, matern52, and with numbers periodic. Alone: "
            "which of them to fit or to take from FILE; may be repeated.",
            rich_help_panel=_PRIOR,
        ),
    ] = None,
    lengthscale: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Over which time positions stay alike: 60s.", rich_help_panel=_PRIOR),
    ] = None,
    sd: Annotated[
        str | None,
        typer.Option(
            metavar="LENGTH",
            help="Standard deviation of each coordinate: 300m. Also with FILE of a population.",
            rich_help_panel=_PRIOR,
        ),
    ] = None,
    nugget: Annotated[
        str | None,
        typer.Option(metavar="LENGTH", help="Error of a single fix, as a deviation: 1m.", rich_help_panel=_PRIOR),
    ] = None,
    period: Annotated[
        str | None, typer.Option(metavar="DURATION", help="For the periodic kernel only: 1d.", rich_help_panel=_PRIOR)
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            metavar="",
            help="Say what was understood and what the noise would be; draw and write nothing.",
            rich_help_panel=_HOW,
        ),
    ] = False,
    simulate: Annotated[
        int | None,
        typer.Option(
            metavar="SEED",
            help="Draw reproducible noise instead of a release: NOT private, for studies.",
            min=0,
            rich_help_panel=_HOW,
        ),
    ] = None,
    effort: Annotated[
        EffortChoice,
        typer.Option(
            metavar="EFFORT",
            help="Steps of the solver: low, normal or high; the report says how near to the least noise it came.",
            rich_help_panel=_HOW,
        ),
    ] = "normal",
    track: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER", help="Which track of a GPX file, from 1, or all of one person's.", rich_help_panel=_HOW
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Which column of a table is what, by name or number from 1: time=when,lat=y,lon=x,who=cab; dates=dmy "
            "for times like 20/03/2021 00:22.",
            rich_help_panel=_HOW,
        ),
    ] = None,
    who: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Whose rows to take from a table of several people.", rich_help_panel=_HOW),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", metavar="", help="Refuse a file that needs cleaning; repair nothing.", rich_help_panel=_HOW
        ),
    ] = False,
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
    again: Annotated[
        bool,
        typer.Option(
            "--again",
            metavar="",
            help="Release a trace once more that was released before. Releases combine: share one.",
            rich_help_panel=_HOW,
        ),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print the report as JSON.", rich_help_panel=_HOW)
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", metavar="", help="Print nothing but errors.", rich_help_panel=_HOW)
    ] = False,
) -> None:
    """Protect the places at some times of a trace, and write a sanitised trace of the same format.

    DIR/share holds what may be shared, DIR/private the report and the mechanism. The noise comes from the operating
    system's random generator: every run is another release, and a trace that was released before needs --again. Exit
    codes: 0 done, 2 something in the input is wrong, 3 no mechanism meets the target or its certificate failed; then
    nothing is written.

    Examples:

    `jaxpriv protect day.gpx --secret 2024-05-01T08:30:00Z --radius 200m --epsilon 1 --prior prior.json --out safe`

    `jaxpriv protect day.csv --hide-ends 500m --radius 300m --budget 50m --out safe --dry-run`
    """
    with reporting_errors():
        where = {"--radius": radius, "--resolution": resolution}
        lengths = {option: parse_length(option, text) for option, text in where.items()}
        goals = {
            option: None if text is None else parse_length(option, text)
            for option, text in {"--budget": budget, "--uncertainty": uncertainty}.items()
        }
        near = None if match is None else parse_length("--match", match)
        ends = None if hide_ends is None else parse_length("--hide-ends", hide_ends)
        centre = None if origin is None else parse_origin("--origin", origin)
        chosen = parse_track(track)
        named = parse_columns(columns)
        expected = _prior(prior, prior_set, tuple(kernel or ()), lengthscale, sd, nugget, period)

        from jaxpriv.jobs.requests import SecretRequest
        from jaxpriv.jobs.target import Target
        from jaxpriv.traces.contents import ReadOptions
        from jaxpriv.traces.projection import LocalPlane

        reading = ReadOptions(named, who, chosen)
        target = Target(
            lengths["--radius"],
            epsilon,
            order,
            delta,
            lengths["--resolution"],
            goals["--budget"],
            goals["--uncertainty"],
            effort,
        )
        secrets = SecretRequest(tuple(secret or ()), near, compound, every, ends)
        plane = None if centre is None else LocalPlane(*centre)
        if dry_run:
            from jaxpriv.jobs.dry_run import dry_run as try_out

            with progress(quiet) as step:
                text = try_out(
                    trace,
                    out,
                    secrets,
                    target,
                    expected,
                    reading=reading,
                    strict=strict,
                    origin=plane,
                    force=force,
                    progress=step,
                )
            if not quiet:
                typer.echo(text, nl=False)
            return
        from jaxpriv.jobs.protect import protect_file
        from jaxpriv.report.text import SIMULATED, report_text

        with progress(quiet) as step:
            done = protect_file(
                trace,
                out,
                secrets,
                target,
                expected,
                reading=reading,
                strict=strict,
                simulate_seed=simulate,
                origin=plane,
                force=force,
                again=again,
                progress=step,
            )
        if not quiet:
            if done.secrets.naive:
                say("Note: --secret has no offset from UTC and was taken as UTC.")
            for sentence in (*done.report.cleaning, *done.odd):
                say(f"Note: {sentence}")
            if done.released.simulated:
                say(SIMULATED)
                say(f"Written: {out}/share and {out}/private.")
            else:
                say(f"Written: {out}/share (to share) and {out}/private (to keep). To check: jaxpriv verify {out}")
        if json:
            typer.echo(done.report.to_json())
        elif not quiet:
            typer.echo("\n" + report_text(done.report), nl=False)


def _prior(
    file: Path | None,
    which: PriorSet | None,
    kernels: tuple[str, ...],
    lengthscale: str | None,
    sd: str | None,
    nugget: str | None,
    period: str | None,
) -> PriorRequest:
    """The numbers of one prior when a length scale, nugget or period is given; else what to fit or to read."""
    deviation = None if sd is None else parse_length("--sd", sd)
    if lengthscale is None and nugget is None and period is None:
        from jaxpriv.jobs.requests import PriorRequest

        return PriorRequest(file=file, which=which, kernels=kernels, sd_m=deviation)
    scale = None if lengthscale is None else parse_duration("--lengthscale", lengthscale)
    error = None if nugget is None else parse_length("--nugget", nugget)
    cycle = None if period is None else parse_duration("--period", period)
    if file is not None:
        raise InputError(
            "--prior FILE has its own numbers; leave --lengthscale, --nugget and --period out (--sd goes with a "
            "population's file)"
        )
    given = {"--kernel": kernels or None, "--lengthscale": scale, "--sd": deviation, "--nugget": error}
    missing = [name for name, value in given.items() if value is None]
    if scale is None or deviation is None or error is None or missing:
        raise InputError(
            f"the prior is not complete: pass {', '.join(missing)}, or no numbers at all to have them fitted "
            "(see jaxpriv protect --help)"
        )
    if len(kernels) != 1:
        raise InputError("numbers describe one prior: give one --kernel")
    (kernel,) = kernels
    from jaxpriv.jobs.prior_choice import PriorChoice
    from jaxpriv.jobs.requests import PriorRequest

    return PriorRequest(given=PriorChoice(kernel, scale, deviation, error, cycle), which=which)
