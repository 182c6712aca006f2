"""How reports in text are set: wrapped lines, sections, and ranges of numbers."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from jaxpriv.report.rounding import significant


_WIDTH = 92


def wrapped(text: str, first: str = "", rest: str = "") -> str:
    """Wrap a paragraph, with `first` before its first line and `rest` before the others."""
    return textwrap.fill(text, _WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def section(title: str, lines: Sequence[str]) -> str:
    """A title and its sentences as a list; empty without sentences."""
    if not lines:
        return ""
    return "\n".join([title, *(wrapped(line, "  * ", "    ") for line in lines)])


def document(blocks: Sequence[str]) -> str:
    """Put blocks below each other, without the empty ones."""
    return "\n\n".join(block for block in blocks if block) + "\n"


def span(values: Sequence[float]) -> str:
    """Say the smallest and the largest of some numbers, once where they read alike."""
    low, high = significant(min(values)), significant(max(values))
    return low if low == high else f"{low} to {high}"
