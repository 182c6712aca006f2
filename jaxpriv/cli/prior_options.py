"""The options of the prior, and what they say together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from jaxpriv.cli.quantities import parse_duration, parse_length
from jaxpriv.errors import InputError


if TYPE_CHECKING:
    from jaxpriv.jobs.requests import PriorRequest

_PRIOR = "The prior: what an attacker expects"
PriorSet = Literal["default", "wide", "exact"]

PriorOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A prior made by jaxpriv fit, from other traces; with --series a table with the same column, of another "
        "time. Without it and without numbers, priors are fitted to TRACE itself: then all is an estimate, not a "
        "guarantee.",
        rich_help_panel=_PRIOR,
    ),
]
PriorSetOption = Annotated[
    PriorSet | None,
    typer.Option(
        metavar="SET",
        help="The priors around the fits that must all be withstood: default (length scales halved and doubled), "
        "wide (times four, too) or exact (the best fit alone).",
        rich_help_panel=_PRIOR,
    ),
]
KernelOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KERNEL",
        help="How positions vary over time: rbf, matern12, matern32, matern52, and with numbers periodic. Alone: "
        "which of them to fit or to take from FILE; may be repeated.",
        rich_help_panel=_PRIOR,
    ),
]
LengthscaleOption = Annotated[
    str | None,
    typer.Option(metavar="DURATION", help="Over which time positions stay alike: 60s.", rich_help_panel=_PRIOR),
]
SdOption = Annotated[
    str | None,
    typer.Option(
        metavar="LENGTH",
        help="Standard deviation of each coordinate: 300m. Also with FILE of a population.",
        rich_help_panel=_PRIOR,
    ),
]
NuggetOption = Annotated[
    str | None,
    typer.Option(metavar="LENGTH", help="Error of a single fix, as a deviation: 1m.", rich_help_panel=_PRIOR),
]
PeriodOption = Annotated[
    str | None, typer.Option(metavar="DURATION", help="For the periodic kernel only: 1d.", rich_help_panel=_PRIOR)
]


def read_prior(
    file: Path | None,
    which: PriorSet | None,
    kernels: tuple[str, ...],
    lengthscale: str | None,
    sd: str | None,
    nugget: str | None,
    period: str | None,
    size: Callable[[str, str], float] = parse_length,
) -> PriorRequest:
    """The numbers of one prior when a length scale, nugget or period is given; else what to fit or to read.

    `size` reads deviations: lengths, or numbers in the unit of a series.
    """
    deviation = None if sd is None else size("--sd", sd)
    if lengthscale is None and nugget is None and period is None:
        from jaxpriv.jobs.requests import PriorRequest

        return PriorRequest(file=file, which=which, kernels=kernels, sd_m=deviation)
    scale = None if lengthscale is None else parse_duration("--lengthscale", lengthscale)
    error = None if nugget is None else size("--nugget", nugget)
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
