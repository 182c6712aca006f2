"""`jaxpriv audit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jaxpriv.cli.console import progress, reporting_errors
from jaxpriv.cli.quantities import parse_length


def audit(
    mechanism: Annotated[
        Path, typer.Argument(metavar="MECHANISM", help="A mechanism.npz, or the folder that jaxpriv protect wrote.")
    ],
    prior: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A prior file of jaxpriv fit. Default: the priors of the report beside it."),
    ] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(metavar="TIME", help="A protected time; may be repeated. Default: those of the report."),
    ] = None,
    radius: Annotated[
        str | None,
        typer.Option(metavar="DISTANCE", help="With --secret: the largest distance of two places, such as 200m."),
    ] = None,
    sensitivity: Annotated[
        str | None,
        typer.Option(
            metavar="DISTANCE",
            help="Also as differential privacy, for traces that differ by at most this in root of summed squares.",
        ),
    ] = None,
    delta: Annotated[float, typer.Option(metavar="NUMBER", help="The probability in (ε, δ) statements.")] = 0.01,
    order: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="The Rényi order. Default: the report's, or 2.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", metavar="", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", metavar="", help="Print nothing but errors.")] = False,
) -> None:
    """One mechanism under every notion of privacy: inferential, differential, information, leakage.

    Says of the stored noise what each notion would promise, infinite where it promises nothing, and why. The table is
    about the mechanism: keep it private like the mechanism itself. Exit codes: 0 done, 2 something in the input is
    wrong.

    Example: `jaxpriv audit DIR --sensitivity 50m`
    """
    with reporting_errors():
        lengths = [
            None if text is None else parse_length(option, text)
            for option, text in (("--radius", radius), ("--sensitivity", sensitivity))
        ]
        with progress(quiet or json) as step:
            step("Reading")
            from jaxpriv.jobs.audit import audit_file

            found = audit_file(
                mechanism,
                prior=prior,
                secrets=secret or (),
                radius_m=lengths[0],
                sensitivity_m=lengths[1],
                delta=delta,
                order=order,
                progress=step,
            )
        if json:
            typer.echo(found.to_json())
        elif not quiet:
            typer.echo(found.text(), nl=False)
