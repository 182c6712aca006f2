"""Texts as HTML: escaped, each with its own writing direction."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from jaxpriv.report.rounding import given


def text(value: str) -> str:
    """Escape a text of the caller, and keep its writing direction to itself."""
    return f"<bdi>{escape(value)}</bdi>"


def paragraph(sentence: str, kind: str = "") -> str:
    """Write a paragraph of our own words, escaped."""
    return f"<p{f' class={chr(34)}{kind}{chr(34)}' if kind else ''}>{escape(sentence)}</p>"


def bullets(sentences: Iterable[str], lead: str = "") -> str:
    """Write sentences as a list; nothing for none."""
    items = "".join(f"<li>{text(sentence)}</li>" for sentence in sentences)
    return f"{f'<p>{escape(lead)}</p>' if lead else ''}<ul>{items}</ul>" if items else ""


def percent(probability: float) -> str:
    """Write a probability that somebody chose in percent."""
    return f"{given(100 * probability)} %"


def two_columns(identity: str, caption: str, rows: Iterable[tuple[str, str]]) -> str:
    """Write a table of names and numbers."""
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="number">{escape(value)}</td></tr>' for name, value in rows
    )
    return f'<table id="{identity}"><caption>{escape(caption)}</caption><tbody>{body}</tbody></table>'


def wide(table: str, label: str) -> str:
    """Let a table that is wider than the page scroll, by keyboard, too."""
    return f'<div class="wide" tabindex="0" role="region" aria-label="{escape(label)}">{table}</div>'


def figure_box(drawing: str, label: str) -> str:
    """Let a figure that is wider than the page scroll, by keyboard, too."""
    return f'<div class="figure" tabindex="0" role="region" aria-label="{escape(label)}">{drawing}</div>'
