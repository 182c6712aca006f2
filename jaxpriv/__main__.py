"""`python -m jaxpriv`: the command line."""

from __future__ import annotations

from jaxpriv.cli import main


if __name__ == "__main__":
    main()
