"""Parts of a page that a script exchanges: one text or one set of attributes for each position of the slider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from jaxpriv.report.page.svg import element, written


class Live:
    """Collects what changes with the slider; what it writes shows the position `start`."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.texts: dict[str, list[str]] = {}
        self.attributes: dict[str, dict[str, list[str]]] = {}

    def text(self, identity: str, values: Sequence[str], tag: str = "span", **attributes: str) -> str:
        """Write an element whose text changes; texts are escaped."""
        self.texts[identity] = list(values)
        fixed = "".join(
            f' {name.rstrip("_").replace("_", "-")}="{escape(value)}"' for name, value in attributes.items()
        )
        return f'<{tag} id="{identity}"{fixed}>{escape(values[self.start])}</{tag}>'

    def element(self, name: str, identity: str, changing: Mapping[str, Sequence[Any]], **attributes: object) -> str:
        """Write an SVG element with attributes that change."""
        texts = {key: [written(value) for value in values] for key, values in changing.items()}
        self.attributes[identity] = texts
        now = {key: values[self.start] for key, values in texts.items()}
        return element(name, id=identity, **now, **attributes)

    def content(self) -> dict[str, Any]:
        """What the script needs."""
        return {"start": self.start, "texts": self.texts, "attributes": self.attributes}
