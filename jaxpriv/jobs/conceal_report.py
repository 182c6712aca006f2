"""The report of `jaxpriv conceal`: what the tables hide and cost, for people and for programs."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

from jaxpriv.distribution.estimated import EstimatedLevel
from jaxpriv.jobs.conceal_audit import GroupNumbers
from jaxpriv.jobs.plain_json import plain
from jaxpriv.report.rounding import significant


@dataclass(frozen=True)
class ConcealReport:
    """What was made, from the whole numbers of the tables.

    Attributes:
        level, total_variation: between what two groups publish, if the groups are distributed exactly as the counts.
        estimated: the same for any distributions that the counts leave possible; None where the numbers are no counts.
        released, unexpected: check-ins released, and how many of them lie where their group has no count. Not part of
            what may be shared, as they tell about the group.
    """

    kind: str
    target: str
    scale_m: float | None
    places: int
    groups: tuple[GroupNumbers, ...]
    level: float
    total_variation: float
    estimated: EstimatedLevel | None
    released: int
    unexpected: int
    folder: Path

    def text(self) -> str:
        """The audit as sentences, for audit.txt: the same whichever group's check-ins were released."""
        scale = "" if self.scale_m is None else f", scale {self.scale_m:.6g} m"
        lines = [
            f"{len(self.groups)} groups on {self.places} places; {self.kind} coupling{scale}, target: {self.target}.",
            "Hidden: to which of these groups a person belongs, from one published place.",
            f"If the groups are distributed exactly as counted: {_level_words(self.level, self.total_variation)}.",
        ]
        if self.estimated is None:
            lines.append("The numbers are not whole: nothing is said about how far the true distributions may be off.")
        else:
            lines.append(
                "If the counts are independent draws from the true distributions, with confidence "
                f"{100.0 * self.estimated.confidence:.6g} %: "
                f"{_level_words(self.estimated.epsilon, self.estimated.total_variation)}."
            )
        lines += [
            f"{one.name}: moved {one.loss_m:.6g} m on average, {one.worst_m:.6g} m at most; {_point_words(one)}."
            for one in self.groups
        ]
        return "\n".join([*lines, *self.remarks()]) + "\n"

    def remarks(self) -> tuple[str, ...]:
        """What is not covered."""
        remarks = []
        if any(math.isinf(one.point_level) for one in self.groups):
            remarks.append(
                "A person's own place is not hidden by this kind of coupling; --kind entropic hides both, for more "
                "distance."
            )
        if self.estimated is not None and math.isinf(self.estimated.epsilon):
            remarks.append(
                "The counts leave it possible that a group never publishes some place that another one does: only the "
                "total variation is bounded."
            )
        remarks += [
            "Every group's level holds for one published place. Several of one person add up, if their places are "
            "independent of one another given the group; otherwise even equal laws may give the group away.",
            "The counts are part of the mechanism: take them from others than the people to protect.",
            "Nothing is said about groups that are not in the table.",
        ]
        return tuple(remarks)

    def notes(self) -> tuple[str, ...]:
        """About the check-ins released, for whoever ran the command."""
        if not self.released:
            return ()
        notes = [f"{self.released} check-ins were released, each drawn by itself."]
        if self.unexpected:
            notes.append(
                f"{self.unexpected} of them lie where their group has no count; they are drawn without regard to the "
                "place, and are outside the first of the two levels."
                if self.kind != "entropic"
                else f"{self.unexpected} of them lie where their group has no count: outside the first of the levels."
            )
        return tuple(notes)

    def to_json(self) -> str:
        """The audit as JSON: metres, nats, nats per metre."""
        estimated = self.estimated
        data = {
            "kind": self.kind,
            "target": self.target,
            "scale_m": self.scale_m,
            "places": self.places,
            "groups": [asdict(one) for one in self.groups],
            "level": self.level,
            "total_variation": self.total_variation,
            "from_counts": None
            if estimated is None
            else {
                "confidence": estimated.confidence,
                "level": estimated.epsilon,
                "total_variation": estimated.total_variation,
            },
            "remarks": self.remarks(),
        }
        return json.dumps(plain(data), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _level_words(level: float, variation: float) -> str:
    if level == 0.0:
        return "what two groups publish has the same law, exactly"
    apart = significant(variation, 3, "up")
    if math.isinf(level):
        return f"no bound on the log ratio; total variation at most {apart}"
    ratio = significant(level, 3, "up")
    return f"what two groups publish differs by log ratios of at most {ratio} nats, total variation at most {apart}"


def _point_words(one: GroupNumbers) -> str:
    if math.isinf(one.point_level):
        return "some published places rule out some true ones"
    return f"places are geo-indistinguishable at {significant(1000.0 * one.point_level, 4, 'up')} nats per km"
