"""The command line; the work is done by plain functions of `jaxpriv.jobs`."""

from __future__ import annotations

from jaxpriv.cli.app import main as main
