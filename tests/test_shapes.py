"""The shapes written in the signatures of the differentiable layers, checked while every public function runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


# Not searches: beartype checks `Self` only where it decorates the class, and the hook decorates the methods.
LAYERS = (
    "linalg",
    "priors",
    "secrets",
    "mechanisms",
    "losses",
    "pml",
    "systems",
    "aggregation",
    "channels",
    "distribution",
    "floors",
    "designs",
)

CODE = """
import runpy, sys
import jax
from jaxtyping import install_import_hook
jax.config.update("jax_enable_x64", True)
layers = [f"jaxpriv.{{name}}" for name in {layers!r}]
with install_import_hook(layers, "beartype.beartype"):
    import jaxpriv as jp
    for name in dir(jp):
        getattr(jp, name)
    table = runpy.run_path({path!r})
matrix = table["_spd"](2)
for name, loss in table["LOSSES"].items():
    loss(matrix)
try:
    jp.renyi_equal_covariance(jax.numpy.ones(3), matrix, 2.0)
except Exception as error:
    assert "ypeCheck" in type(error).__name__, error
else:
    sys.exit("a wrong shape went through: the check is not on")
"""


@pytest.mark.slow
def test_signatures_tell_the_truth():
    path = Path(__file__).parent / "losses" / "test_transforms.py"
    code = CODE.format(layers=LAYERS, path=str(path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-6000:]
