"""Run benchmarks by name: `python -m benchmarks [--quick] [NAME …]`; without a name, all of them.

A benchmark is a module of this package with a function `main()` or `main(*, quick: bool = False)`. Its name is that of
the module, and any beginning that only one module has will do: `matrix` for `matrix_mechanism`.
"""

from __future__ import annotations

import inspect
import pkgutil
import sys
from importlib import import_module
from pathlib import Path


# Not benchmarks: what they share, and this file.
_SHARED = ("__main__", "measure", "studies")


def names() -> list[str]:
    """Every benchmark there is, in alphabetical order."""
    found = [module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)])]
    return sorted(name for name in found if name not in _SHARED and not name.startswith("_"))


def resolve(asked: str, known: list[str]) -> str | None:
    """The benchmark of that name, or the only one that begins so; None if there is none or more than one."""
    if asked in known:
        return asked
    beginning = [name for name in known if name.startswith(asked)]
    return beginning[0] if len(beginning) == 1 else None


def main(arguments: list[str]) -> int:
    quick = "--quick" in arguments
    known = names()
    chosen = []
    for asked in (one for one in arguments if one != "--quick"):
        name = resolve(asked, known)
        if name is None:
            print(f"no benchmark is called {asked!r}; there are: {', '.join(known)}", file=sys.stderr)
            return 2
        chosen.append(name)
    for name in chosen or known:
        print(f"\n## {name}\n", flush=True)
        run = import_module(f"benchmarks.{name}").main
        run(quick=quick) if "quick" in inspect.signature(run).parameters else run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
