"""The record of a release as rows of a table: every value that a reader may want to check."""

from __future__ import annotations

from dataclasses import asdict

from jaxpriv.report.record import Report


# Sentences that the page shows in full elsewhere.
_SENTENCES = {"warnings", "not_claimed", "cleaning", "guarantee"}


def parameter_rows(report: Report) -> list[tuple[str, str]]:
    """Return (name, value) for every value of the record, in its order; names of nested values are joined by dots.

    A record in a list, such as a prior, is one row.
    """
    content = {name: value for name, value in asdict(report).items() if name not in _SENTENCES}
    return _flat("", content)


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
