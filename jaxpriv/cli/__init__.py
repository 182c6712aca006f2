"""The command line; the work is done by plain functions of `jaxpriv.jobs`."""

from __future__ import annotations

import os


# Before NumPy is loaded: on the small matrices of a trace, competing BLAS threads are ten times slower than one.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from jaxpriv.cli.app import main as main  # noqa: E402
