"""The public names: all there, typed as they are loaded, and loaded only when used."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import jaxpriv as jp


def test_every_name_is_loadable_and_typed_where_it_is_found():
    tree = ast.parse(Path(jp.__file__).read_text(encoding="utf-8"))
    typed = {
        alias.name: node.module
        for branch in tree.body
        if isinstance(branch, ast.If)
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == jp._HOME
    for name in dir(jp):
        assert getattr(jp, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        _ = jp.nonsense


def test_importing_loads_neither_jax_nor_numpy():
    code = "import sys, jaxpriv; assert not {'jax', 'numpy'} & set(sys.modules), 'loaded too early'"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_version_is_the_installed_one():
    from importlib.metadata import version

    assert jp.__version__ == version("jaxpriv")
