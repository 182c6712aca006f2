"""The site: every public name has an entry in the API, every page is in the navigation, the guides' code runs."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

import jaxpriv


ROOT = Path(__file__).parents[2]
ENTRIES = re.findall(
    r"^::: (\S+)$", "\n".join(page.read_text(encoding="utf-8") for page in ROOT.glob("docs/api/*.md")), re.MULTILINE
)


def test_every_public_name_has_one_entry():
    homes = {f"{module}.{name}" for name, module in jaxpriv._HOME.items() if module.startswith("jaxpriv.")}
    assert not homes - set(ENTRIES) - {"jaxpriv.priors.kernels"}
    assert len(ENTRIES) == len(set(ENTRIES))


@pytest.mark.parametrize("package", ["channels", "distribution", "systems", "aggregation", "pml"])
def test_every_name_of_a_package_has_an_entry(package):
    module = importlib.import_module(f"jaxpriv.{package}")
    public = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    names = {name for name, what in public.items() if inspect.isfunction(what) or inspect.isclass(what)}
    assert len(names) > 5
    assert not names - {entry.rpartition(".")[2] for entry in ENTRIES}


@pytest.mark.parametrize("entry", ENTRIES)
def test_entries_exist(entry):
    module, _, name = entry.rpartition(".")
    assert getattr(importlib.import_module(module), name).__doc__


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    named = set(re.findall(r"(\S+\.md)$", navigation, re.MULTILINE))
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in ROOT.glob("docs/**/*.md")}
    assert named == pages


@pytest.mark.parametrize("guide", sorted(ROOT.glob("docs/guides/*.md")), ids=lambda path: path.stem)
def test_examples_of_a_guide_run(guide):
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, guide.name, "exec"), names)
