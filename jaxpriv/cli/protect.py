"""`jaxpriv protect`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from jaxpriv.cli.console import progress, reporting_errors
from jaxpriv.cli.ledger_options import (
    LedgerOption,
    LimitOption,
    PersonOption,
    ledger_request,
    say_answered,
    say_together,
)
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
    AgainOption,
    BudgetOption,
    CompoundOption,
    DeltaOption,
    DryRunOption,
    EffortOption,
    EpsilonOption,
    EveryOption,
    ForceOption,
    FromOption,
    GridOption,
    HideEndsOption,
    JsonOption,
    MatchOption,
    OrderOption,
    OriginOption,
    OutOption,
    QuietOption,
    RadiusOption,
    ResolutionOption,
    SecretOption,
    SeriesOption,
    SimulateOption,
    ToOption,
    TraceArgument,
    UncertaintyOption,
)
from jaxpriv.cli.quantities import parse_duration, parse_length, parse_origin, parse_size, parse_time
from jaxpriv.cli.reading import (
    ColumnsOption,
    DuplicatesOption,
    StrictOption,
    TrackOption,
    WhoOption,
    reading_options,
)
from jaxpriv.cli.series import protect_column, refuse_with_series
from jaxpriv.cli.written import say_release
from jaxpriv.errors import InputError


if TYPE_CHECKING:
    from jaxpriv.jobs.grid_times import GridRequest
    from jaxpriv.jobs.protect import Protected


def protect(
    trace: TraceArgument,
    radius: RadiusOption,
    out: OutOption,
    secret: SecretOption = None,
    match: MatchOption = None,
    compound: CompoundOption = False,
    every: EveryOption = False,
    hide_ends: HideEndsOption = None,
    series: SeriesOption = None,
    epsilon: EpsilonOption = None,
    budget: BudgetOption = None,
    uncertainty: UncertaintyOption = None,
    prior: PriorOption = None,
    prior_set: PriorSetOption = None,
    kernel: KernelOption = None,
    lengthscale: LengthscaleOption = None,
    sd: SdOption = None,
    nugget: NuggetOption = None,
    period: PeriodOption = None,
    ledger: LedgerOption = None,
    person: PersonOption = None,
    limit: LimitOption = None,
    dry_run: DryRunOption = False,
    simulate: SimulateOption = None,
    effort: EffortOption = "normal",
    track: TrackOption = None,
    columns: ColumnsOption = None,
    who: WhoOption = None,
    strict: StrictOption = False,
    duplicates: DuplicatesOption = "merge",
    order: OrderOption = 2.0,
    delta: DeltaOption = 0.01,
    resolution: ResolutionOption = None,
    origin: OriginOption = None,
    grid: GridOption = None,
    start: FromOption = None,
    end: ToOption = None,
    force: ForceOption = False,
    again: AgainOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
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
        account = ledger_request(ledger, person, limit, simulate=simulate is not None, dry_run=dry_run)
        size = parse_length if series is None else parse_size
        if series is not None:
            repeated = None if duplicates == "merge" else duplicates
            refuse_with_series(match=match, hide_ends=hide_ends, origin=origin, track=track, grid=grid, ledger=ledger)
            refuse_with_series(duplicates=repeated)
            if resolution is None:
                raise InputError("--series needs --resolution: the step to which the sensor rounds, in its own unit")
        where = {"--radius": radius, "--resolution": resolution or "0.5m"}
        lengths = {option: size(option, text) for option, text in where.items()}
        goals = {
            option: None if text is None else size(option, text)
            for option, text in {"--budget": budget, "--uncertainty": uncertainty}.items()
        }
        near = None if match is None else parse_length("--match", match)
        ends = None if hide_ends is None else parse_length("--hide-ends", hide_ends)
        centre = None if origin is None else parse_origin("--origin", origin)
        reading = reading_options(columns, who, track, strict, duplicates)
        expected = read_prior(prior, prior_set, tuple(kernel or ()), lengthscale, sd, nugget, period, size)
        regular = _grid(grid, start, end)

        from jaxpriv.jobs.requests import SecretRequest
        from jaxpriv.jobs.target import Target
        from jaxpriv.traces.projection import LocalPlane

        target = Target(
            lengths["--radius"],
            epsilon,
            order,
            delta,
            lengths["--resolution"],
            goals["--budget"],
            goals["--uncertainty"],
            effort,
            "m" if series is None else "",
        )
        secrets = SecretRequest(tuple(secret or ()), near, compound, every, ends)
        if series is not None:
            protect_column(
                trace,
                series,
                out,
                secrets,
                target,
                expected,
                reading=reading,
                simulate=simulate,
                dry_run=dry_run,
                force=force,
                again=again,
                json=json,
                quiet=quiet,
            )
            return
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
                    origin=plane,
                    force=force,
                    grid=regular,
                    progress=step,
                )
            if not quiet:
                typer.echo(text, nl=False)
            return
        if account is not None:
            from jaxpriv.jobs.ledger.answer import Answered
            from jaxpriv.jobs.ledger.protect import protect_with_ledger

            with progress(quiet) as step:
                done = protect_with_ledger(
                    trace,
                    out,
                    secrets,
                    target,
                    expected,
                    account,
                    reading=reading,
                    origin=plane,
                    force=force,
                    again=again,
                    grid=regular,
                    progress=step,
                )
            if isinstance(done, Answered):
                say_answered(done, out, json=json, quiet=quiet)
            else:
                say_together(done.report, quiet=quiet)
                _say_done(done, out, json=json, quiet=quiet)
            return
        from jaxpriv.jobs.protect import protect_file

        with progress(quiet) as step:
            done = protect_file(
                trace,
                out,
                secrets,
                target,
                expected,
                reading=reading,
                simulate_seed=simulate,
                origin=plane,
                force=force,
                again=again,
                grid=regular,
                progress=step,
            )
        _say_done(done, out, json=json, quiet=quiet)


def _grid(step: str | None, start: str | None, end: str | None) -> GridRequest | None:
    if step is None:
        if start is not None or end is not None:
            raise InputError("--from and --to are the window of --grid; name its step, such as --grid 60s")
        return None
    from jaxpriv.jobs.grid_times import GridRequest

    return GridRequest(
        parse_duration("--grid", step),
        None if start is None else parse_time("--from", start),
        None if end is None else parse_time("--to", end),
    )


def _say_done(done: Protected, out: Path, *, json: bool, quiet: bool) -> None:
    from jaxpriv.report.text import report_text

    report, notes = done.report, (*done.report.cleaning, *done.report.odd)
    say_release(report, report_text(report), out, notes, naive=done.secrets.naive, json=json, quiet=quiet)
