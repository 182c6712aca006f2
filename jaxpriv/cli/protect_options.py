"""The options of `jaxpriv protect`, but for those of the prior and of reading the file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


_WHAT, _GOAL = "What to protect", "The goal: exactly one of --epsilon, --budget and --uncertainty"
_HOW = "Details"
EffortChoice = Literal["low", "normal", "high"]

TraceArgument = Annotated[
    Path,
    typer.Argument(metavar="TRACE", help="A trace of one person: .csv (time, lat, lon), .gpx, .plt and others."),
]
RadiusOption = Annotated[
    str,
    typer.Option(
        metavar="LENGTH",
        help="Two places at most this far apart stay hard to tell apart: 200m, 0.2km.",
        rich_help_panel=_WHAT,
    ),
]
OutOption = Annotated[Path, typer.Option(metavar="DIR", help="The folder to write; made anew.", rich_help_panel=_WHAT)]
SecretOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SECRET",
        help="A sensitive time such as 2024-05-01T08:30:00Z, each fix of a window START/END of two times, each fix in "
        'a schedule such as "daily 22:00/06:00+02:00", or each fix near a place LAT,LON (with --match). May be '
        "repeated; each is protected by itself.",
        rich_help_panel=_WHAT,
    ),
]
MatchOption = Annotated[
    str | None,
    typer.Option(metavar="LENGTH", help="How near to LAT,LON a fix counts: 150m.", rich_help_panel=_WHAT),
]
CompoundOption = Annotated[
    bool,
    typer.Option(
        "--compound",
        metavar="",
        help="Protect the fixes of each window or visit together, not each by itself.",
        rich_help_panel=_WHAT,
    ),
]
EveryOption = Annotated[
    bool, typer.Option("--all", metavar="", help="Protect every fix, each by itself.", rich_help_panel=_WHAT)
]
HideEndsOption = Annotated[
    str | None,
    typer.Option(
        metavar="LENGTH",
        help="Protect both ends of the trace, until it is this far away: 500m.",
        rich_help_panel=_WHAT,
    ),
]
EpsilonOption = Annotated[
    float | None,
    typer.Option(metavar="NATS", help="How much the release may tell; smaller is safer.", rich_help_panel=_GOAL),
]
BudgetOption = Annotated[
    str | None,
    typer.Option(
        metavar="LENGTH",
        help="The least epsilon when points move by this much (root mean square): 50m.",
        rich_help_panel=_GOAL,
    ),
]
UncertaintyOption = Annotated[
    str | None,
    typer.Option(
        metavar="LENGTH",
        help="The least noise that leaves each coordinate of a secret uncertain by this much (half-width of the "
        "68 % interval): 200m.",
        rich_help_panel=_GOAL,
    ),
]
DryRunOption = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        metavar="",
        help="Say what was understood and what the noise would be; draw and write nothing.",
        rich_help_panel=_HOW,
    ),
]
SimulateOption = Annotated[
    int | None,
    typer.Option(
        metavar="SEED",
        help="Draw reproducible noise instead of a release: NOT private, for studies.",
        min=0,
        rich_help_panel=_HOW,
    ),
]
EffortOption = Annotated[
    EffortChoice,
    typer.Option(
        metavar="EFFORT",
        help="Steps of the solver: low, normal or high; the report says how near to the least noise it came.",
        rich_help_panel=_HOW,
    ),
]
OrderOption = Annotated[float, typer.Option(help="Rényi order of epsilon.", rich_help_panel=_HOW)]
DeltaOption = Annotated[
    float, typer.Option(help="Probability for which the odds in the report may fail.", rich_help_panel=_HOW)
]
ResolutionOption = Annotated[
    str | None,
    typer.Option(
        metavar="LENGTH", help="To what the positions of TRACE are rounded; 0.5m unless said.", rich_help_panel=_HOW
    ),
]
SeriesOption = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Protect this column of a sensor's table (temperature, power, heart rate) instead of positions. Lengths "
        "become plain numbers in its unit: --radius 2 --budget 0.5; --resolution must be given.",
        rich_help_panel=_WHAT,
    ),
]
GridOption = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="Publish positions at regular times, such as 60s apart, and not when fixes were taken.",
        rich_help_panel=_HOW,
    ),
]
FromOption = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="TIME", help="With --grid: its first time, chosen in advance.", rich_help_panel=_HOW
    ),
]
ToOption = Annotated[
    str | None,
    typer.Option("--to", metavar="TIME", help="With --grid: its last time, chosen in advance.", rich_help_panel=_HOW),
]
OriginOption = Annotated[
    str | None,
    typer.Option(
        metavar="LAT,LON",
        help="Public origin of the local plane; default: the mean position rounded to 0.1 degree.",
        rich_help_panel=_HOW,
    ),
]
ForceOption = Annotated[
    bool, typer.Option("--force", metavar="", help="Replace DIR, if jaxpriv wrote it.", rich_help_panel=_HOW)
]
AgainOption = Annotated[
    bool,
    typer.Option(
        "--again",
        metavar="",
        help="Release a trace once more that was released before. Releases combine: share one.",
        rich_help_panel=_HOW,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", metavar="", help="Print the report as JSON.", rich_help_panel=_HOW)]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", metavar="", help="Print nothing but errors.", rich_help_panel=_HOW)
]
