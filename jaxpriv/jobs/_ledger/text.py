"""What a ledger holds, for people: releases, persons, the joint ε so far and what is left of the limit."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from jaxpriv.jobs.ledger import Ledger
from jaxpriv.jobs.ledger_joint import SecretTogether, joint_losses
from jaxpriv.report.rounding import finite_or_none, given, significant
from jaxpriv.traces.instants import format_instant


_ROUNDING = 1e-9  # what another machine's kernels and products may differ by
_STATES = {
    "reserved": "counted; nothing was published yet, and the same command finishes it",
    "stored": "counted; its folder may not be complete, and the same command writes it again",
    "published": "published",
}


@dataclass(frozen=True)
class ReleaseLine:
    """One release in a list; ε in nats."""

    number: int
    recorded: str
    state: str
    first: str
    last: str
    fixes: int
    secrets: int
    order: float
    epsilon_alone: float


@dataclass(frozen=True)
class PersonLines:
    """Everything about one person. `found` is the joint ε certified anew (None: not asked for)."""

    name: str
    releases: tuple[ReleaseLine, ...]
    epsilon_together: float
    secrets: tuple[SecretTogether, ...]
    found: float | None = None

    @property
    def right(self) -> bool:
        """Whether the joint ε on record is not below the one found."""
        return self.found is None or self.found <= self.epsilon_together * (1 + _ROUNDING)


@dataclass(frozen=True)
class Summary:
    """What a ledger holds."""

    limit: float | None
    persons: tuple[PersonLines, ...]

    @property
    def right(self) -> bool:
        """Whether everything that was certified anew is what is on record."""
        return all(one.right for one in self.persons)

    def to_json(self) -> str:
        """Write the summary as JSON."""
        content = {"format": "jaxpriv-ledger-list", "format_version": 1} | asdict(self)
        for person in content["persons"]:
            person["found"] = None if person["found"] is None else finite_or_none(person["found"])
        return json.dumps(content, indent=2, allow_nan=False)

    def text(self) -> str:
        """Write the summary for people."""
        limit = "no limit was set" if self.limit is None else f"limit ε = {given(self.limit)} for each person"
        lines = [f"{len(self.persons)} person(s); {limit}. Keep this list as private as the traces."]
        for one in self.persons:
            lines += ["", *_person(one, self.limit)]
        return "\n".join(lines) + "\n"


def summarise(path: Path, *, check: bool = False) -> Summary:
    """Read a ledger; with `check` certify all releases of each person anew. Raises `InputError` for what is none."""
    with Ledger(path, create=False) as book:
        persons = []
        for person in book.people():
            releases = book.releases(person.name)
            secrets = tuple(book.together(person.name))
            found = joint_losses(releases).epsilon if check and releases else None
            lines = tuple(
                ReleaseLine(
                    one.number,
                    one.recorded,
                    one.state,
                    format_instant(one.time_us[0]),
                    format_instant(one.time_us[-1]),
                    len(one.time_us),
                    len(one.secrets),
                    one.order,
                    one.alone,
                )
                for one in releases
            )
            together = max((one.together for one in secrets), default=0.0)
            persons.append(PersonLines(person.name, lines, together, secrets, found))
        return Summary(book.limit, tuple(persons))


def _person(one: PersonLines, limit: float | None) -> list[str]:
    left = (
        "" if limit is None else f"; {significant(max(limit - one.epsilon_together, 0.0), 3, 'down')} below the limit"
    )
    together = significant(one.epsilon_together, 3, "up")
    lines = [f"{one.name}: {len(one.releases)} release(s); all together ε = {together}{left}"]
    for release in one.releases:
        lines.append(
            f"  {release.number}. {release.first} to {release.last}, {release.fixes} fixes, {release.secrets} "
            f"secret(s); alone ε = {significant(release.epsilon_alone, 3, 'up')} at order {given(release.order)}; "
            f"recorded {release.recorded}; {_STATES[release.state]}"
        )
    for secret in sorted(one.secrets, key=lambda secret: -secret.together)[:12]:
        lines.append(
            f"  - {secret.label}: ε = {significant(secret.alone, 3, 'up')} by release {secret.release} alone, "
            f"{significant(secret.together, 3, 'up')} by all"
        )
    if one.found is not None:
        verdict = "which is what is on record" if one.right else "MORE THAN WHAT IS ON RECORD: do not rely on it"
        lines.append(f"  Certified anew: ε = {significant(one.found, 3, 'up')}, {verdict}.")
    return lines
