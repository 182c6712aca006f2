"""What the command line says, where, and with which exit code."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer
from rich.console import Console

from jaxpriv.errors import CertificateError, InfeasibleError, InputError


EXIT_UNEXPECTED = 1
EXIT_INPUT = 2
EXIT_INFEASIBLE = 3
EXIT_NOT_VERIFIED = 3


def say(text: str) -> None:
    """Write a note to stderr, as it is."""
    typer.echo(text, err=True)


def use_compilation_cache() -> None:
    """Have JAX, once it is loaded in this process, keep compiled programs for later runs.

    In $XDG_CACHE_HOME/jaxpriv or ~/.cache/jaxpriv, unless JAX_COMPILATION_CACHE_DIR says where. Programs hold no
    positions: these are their arguments.
    """
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", os.path.join(base, "jaxpriv"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")


@contextmanager
def reporting_errors() -> Iterator[None]:
    """Turn errors into one sentence on stderr and an exit code: 2 for input, 3 for what cannot be met.

    The message of an error that nobody foresaw may quote the trace and is withheld, unless JAXPRIV_DEBUG is set.
    """
    try:
        yield
    except InputError as error:
        _stop(f"Error: {error}", EXIT_INPUT)
    except (InfeasibleError, CertificateError) as error:
        _stop(f"Error: {error}", EXIT_INFEASIBLE)
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:
        if os.environ.get("JAXPRIV_DEBUG"):
            raise
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(frame.filename)}, line {frame.lineno}"
        _stop(
            f"Error: jaxpriv stopped on an unexpected {type(error).__name__} ({where}). Its message is withheld since "
            "it might quote the trace; set JAXPRIV_DEBUG=1 to see it, and please report it.",
            EXIT_UNEXPECTED,
        )


def _stop(message: str, code: int) -> None:
    say(message)
    raise typer.Exit(code)


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show the current step on stderr while it lasts, on a terminal only; nothing when quiet."""
    console = Console(stderr=True, quiet=quiet)
    with console.status("Starting") as status:
        yield lambda step: status.update(f"{step} ...")
