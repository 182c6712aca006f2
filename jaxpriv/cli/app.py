"""The commands."""

from __future__ import annotations

import importlib.metadata

import typer

from jaxpriv.cli.audit import audit
from jaxpriv.cli.batch import batch
from jaxpriv.cli.conceal import conceal
from jaxpriv.cli.console import use_compilation_cache
from jaxpriv.cli.demo import demo
from jaxpriv.cli.explore import explore
from jaxpriv.cli.fit import fit
from jaxpriv.cli.inspect import inspect
from jaxpriv.cli.ledger import ledger
from jaxpriv.cli.obfuscate import obfuscate
from jaxpriv.cli.protect import protect
from jaxpriv.cli.verify import verify


app = typer.Typer(
    name="jaxpriv",
    help="Least-noise, certified privacy for location traces.\n\n"
    "Publish a trace whose position at a sensitive time stays uncertain, with as little noise as the promise needs. "
    "Begin with `jaxpriv demo`.",
    rich_markup_mode="markdown",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"jaxpriv {importlib.metadata.version('jaxpriv')}")
        raise typer.Exit


@app.callback()
def common(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version."),
) -> None:
    """Least-noise, certified privacy for location traces."""


app.command()(protect)
app.command()(batch)
app.command()(explore)
app.command()(inspect)
app.command()(fit)
app.command()(verify)
app.command()(audit)
app.command()(ledger)
app.command()(obfuscate)
app.command()(conceal)
app.command()(demo)


def main() -> None:
    """Run the command line."""
    use_compilation_cache()
    app()
