"""The record of a release as rows of a table: every value that a reader may want to check."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from jaxpriv.report.page.details import ReleaseDetails
from jaxpriv.report.page.words import text, wide
from jaxpriv.report.record import Report
from jaxpriv.report.rounding import given


# Sentences that the page shows in full elsewhere.
_SENTENCES = {"warnings", "not_claimed", "cleaning", "odd", "guarantee"}


def parameters(report: Report, details: ReleaseDetails) -> str:
    """Write the table of every value."""
    rows = [*parameter_rows(report), ("worst_priors", ", ".join(details.worst_priors))]
    rows += [(f"secrets.{i}.label", secret.label) for i, secret in enumerate(details.secrets)]
    rows += [(f"secrets.{i}.radius_m", given(secret.radius_m)) for i, secret in enumerate(details.secrets)]
    body = "".join(f'<tr><th scope="row">{text(name)}</th><td>{text(value)}</td></tr>' for name, value in rows)
    table = f'<table id="parameter-table"><caption>Every parameter</caption><tbody>{body}</tbody></table>'
    metres = "metres" if details.unit == "m" else f"in {text(details.unit)}"
    return (
        f'<p class="note">Names ending in _m are {metres}, in _s seconds; ε values are nats. The same values, for '
        f"programs, are in report.json.</p>{wide(table, 'Table of parameters')}"
    )


def parameter_rows(report: Report) -> list[tuple[str, str]]:
    """Return (name, value) for every value of the record, in its order; names of nested values are joined by dots.

    A record in a list, such as a prior, is one row.
    """
    content = {name: value for name, value in asdict(report).items() if name not in _SENTENCES}
    return _flat("", content)


def flat_rows(record: Any) -> list[tuple[str, str]]:
    """Return (name, value) for every value of a record (a dataclass), in its order; nested names are joined by dots."""
    return _flat("", asdict(record))


def _flat(name: str, value: object) -> list[tuple[str, str]]:
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list | tuple):
        if not any(isinstance(part, dict | list | tuple) for part in value):
            return [(name, ", ".join(map(_written, value)) or "none")]
        if all(isinstance(part, dict) and _is_plain(part) for part in value):
            return [
                (f"{name}.{i}", "; ".join(f"{k}: {_written(v)}" for k, v in part.items()))
                for i, part in enumerate(value)
            ]
        parts = enumerate(value)
    else:
        return [(name, _written(value))]
    return [row for key, part in parts for row in _flat(f"{name}.{key}" if name else str(key), part)]


def _is_plain(record: dict) -> bool:
    return not any(isinstance(value, dict | list | tuple) for value in record.values())


def _written(value: object) -> str:
    """Write numbers with all their digits: they are upper or lower values, and rounding would lose which."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)
