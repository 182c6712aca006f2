"""The result of an inspection in words."""

from __future__ import annotations

from dataclasses import fields

from jaxpriv.jobs.inspect import InspectedPerson, Inspection
from jaxpriv.report.rounding import significant
from jaxpriv.traces.contents import shown_name
from jaxpriv.traces.trace import Cleaning


_IN_FULL = 3
_SHOWN = 100


def inspection_text(found: Inspection) -> str:
    """Say what was understood, what is odd and what would be dropped; a table when there are many people."""
    lines = [f"Format: {found.kind}"]
    if found.columns:
        lines.append("Columns: " + ", ".join(f"{what} = {shown_name(name)}" for what, name in found.columns.items()))
    if found.counts:
        lines.append("Counts: " + ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in found.counts.items()))
    lines.append("Units: degrees of WGS 84, times in UTC")
    if len(found.people) > 1:
        lines.append(
            f"{'Trips' if found.trips else 'People or devices'}: {sum(p.name is not None for p in found.people)}"
        )
    if len(found.people) > _IN_FULL:
        lines += ["", *_table(found.people)]
    else:
        for person in found.people:
            lines += ["", *_person(person)]
    lines += [
        "",
        f"protect would refuse this file: {found.problem}" if found.problem else "protect can read this file.",
    ]
    return "\n".join(lines) + "\n"


def _person(person: InspectedPerson) -> list[str]:
    lines = [] if person.name is None else [f"{shown_name(person.name)}:"]
    lines.append(f"Rows: {person.cleaning.rows_read} read, {person.dropped} would be dropped; {person.points} points")
    if person.points:
        lines.append(f"Time: {person.first} to {person.last}, written as {person.time_unit}")
        step = f"{significant(person.median_step_s, 3)} s" if person.points > 1 else "none (one point)"
        lines.append(f"Median step: {step}; longest within the file's segments: {person.odd.longest_step_s:g} s")
        known = f"about {significant(person.resolution_m, 2, 'up')} m" if person.resolution_m else "cannot be told"
        lines.append(f"Positions: up to {person.decimals} decimals; resolution {known}")
    for title, sentences in (
        ("Cleaning", person.cleaning.sentences()),
        ("Odd, and left as it is", person.odd.sentences()),
        ("To protect it", list(person.problems)),
    ):
        if sentences:
            lines += [f"{title}:", *(f"  - {sentence}" for sentence in sentences)]
    if person.points and not person.cleaning.sentences() and not person.odd.sentences():
        lines.append("Nothing to clean and nothing odd.")
    return lines


def _table(people: tuple[InspectedPerson, ...]) -> list[str]:
    names = [shown_name(person.name or "(no name)") for person in people[:_SHOWN]]
    width = max(len("name"), *map(len, names))
    lines = [f"{'name':<{width}}  {'rows':>7} {'dropped':>7} {'points':>7} {'step s':>8}  first to last"]
    for name, person in zip(names, people[:_SHOWN], strict=True):
        span = f"{person.first} to {person.last}" if person.points else "nothing usable"
        lines.append(
            f"{name:<{width}}  {person.cleaning.rows_read:>7} {person.dropped:>7} {person.points:>7} "
            f"{person.median_step_s:>8.4g}  {span}"
        )
    if len(people) > _SHOWN:
        lines.append(f"... and {len(people) - _SHOWN} more (see --json)")
    # Summed over people, no rule compares rows of two of them.
    counted = [one.name for one in fields(Cleaning) if one.name != "scatter_m"]
    total = Cleaning(**{name: sum(getattr(person.cleaning, name) for person in people) for name in counted})
    if total.sentences():
        lines += ["Cleaning, all together:", *(f"  - {sentence}" for sentence in total.sentences())]
    lines.append("For details of one, and for what is odd, pass --who NAME.")
    return lines
