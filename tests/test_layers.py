"""Imports point down: cli > jobs > report, plots > traces > … > linalg, and certificates know no JAX."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest


PACKAGE = Path(__file__).parents[1] / "jaxpriv"
# From the top; packages of one line may import each other.
LAYERS = (
    ("cli",),
    ("jobs",),
    ("report", "plots"),
    ("channels", "distribution"),
    ("fitting",),
    ("traces",),
    ("baselines", "aggregation", "designs", "searches", "systems", "convex"),
    ("floors",),
    ("losses", "pml"),
    ("mechanisms",),
    ("priors", "secrets"),
    ("linalg",),
    ("certificates",),
    ("errors", "precision", "shapes", "lazy"),
)
HEIGHT = {name: -level for level, names in enumerate(LAYERS) for name in names}


def imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    return names | {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}


FILES = [path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE]


@pytest.mark.parametrize("package", sorted({path.relative_to(PACKAGE).parts[0] for path in FILES}))
def test_imports_point_down(package):
    up = []
    for path in (PACKAGE / package).rglob("*.py"):
        for name in imported(path):
            parts = name.split(".")
            if parts[0] == "jaxpriv" and len(parts) > 1 and HEIGHT[parts[1]] > HEIGHT[package]:
                up.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert not up


def test_certificates_know_no_jax():
    for path in (PACKAGE / "certificates").rglob("*.py"):
        assert not {name.split(".")[0] for name in imported(path)} & {"jax", "jaxlib", "equinox", "tinygp", "jaxtyping"}
