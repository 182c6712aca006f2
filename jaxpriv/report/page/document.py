"""One HTML file that is complete in itself: nothing can be fetched, sent, or run but what is in it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from typing import Any


_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'"


@dataclass(frozen=True)
class Section:
    """A part of the page with a title; `content` is HTML."""

    identity: str
    title: str
    content: str


def document(
    title: str, header: str, sections: Sequence[Section], footer: str, *, styles: Sequence[str], script: str = ""
) -> str:
    """Write a page. `header` and `footer` are HTML, `styles` name files of this package.

    Without a `script` the page's own policy forbids any; with one, all but this very text.
    """
    policy = _POLICY
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
        policy += f"; script-src 'sha256-{digest}'"
    links = "".join(f'<a href="#{one.identity}">{escape(one.title)}</a>' for one in sections)
    body = "".join(
        f'<section id="{one.identity}" aria-labelledby="{one.identity}-title">'
        f'<h2 id="{one.identity}-title">{escape(one.title)}</h2>\n{one.content}\n</section>\n'
        for one in sections
    )
    style = "".join(packaged(name) for name in styles)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="robots" content="noindex">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f'<a class="skip" href="#content">Skip to the content</a>\n{header}\n'
        f'<nav aria-label="Parts of this page">{links}</nav>\n<main id="content">\n{body}</main>\n'
        f"<footer>{footer}</footer>\n{f'<script>{script}</script>' if script else ''}\n</body>\n</html>\n"
    )


def packaged(name: str) -> str:
    """Return the text of a file beside this module."""
    return resources.files("jaxpriv.report.page").joinpath(name).read_text(encoding="utf-8")


def data_block(identity: str, content: Any) -> str:
    """Write values as a block of JSON that no text in them can close or break.

    Every character that means something to HTML is written as an escape of JSON, and so are the two line ends that are
    allowed in JSON but not in older JavaScript. Raises ValueError for numbers that are not finite.
    """
    written = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        written = written.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/json" id="{identity}">{written}</script>'
