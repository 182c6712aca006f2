"""`jaxpriv conceal`: tables that give every group one published law, their audit, a picture, and releases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np

from jaxpriv.channels.channel import Channel
from jaxpriv.channels.table import IntegerTable
from jaxpriv.distribution.coupling import CouplingMechanism, Kind, coupling_mechanism
from jaxpriv.distribution.estimated import EstimatedLevel, estimated_level
from jaxpriv.distribution.redirected import entropic_mechanism
from jaxpriv.distribution.targets import barycentre
from jaxpriv.errors import InputError
from jaxpriv.jobs.checkins import read_checkins
from jaxpriv.jobs.conceal_audit import exact_level, exact_outputs, group_numbers
from jaxpriv.jobs.conceal_file import ConcealFile
from jaxpriv.jobs.conceal_groups import GroupCounts, read_group_counts
from jaxpriv.jobs.conceal_report import ConcealReport
from jaxpriv.jobs.output import check_output, output_folder
from jaxpriv.jobs.released_checkins import write_applied, write_released
from jaxpriv.plots.conceal import ConcealPicture, draw_conceal
from jaxpriv.precision import double_precision


KINDS: tuple[Kind, ...] = get_args(Kind)
RULES = ("barycentre", "mean")
# A target without cells of less mass than this, and tables mixed with so much of it, keep 62 bits enough.
_LEAST_MASS = 1e-9
_MIXED = 1e-6


def conceal(
    source: Path,
    out: Path,
    *,
    kind: Kind = "cost",
    scale_m: float | None = None,
    target: str = "barycentre",
    groups: tuple[str, ...] | None = None,
    confidence: float = 0.95,
    checkins: Path | None = None,
    member_of: str | None = None,
    force: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> ConcealReport:
    """Design a coupling mechanism for a table of groups and write DIR: share/ (mechanism.npz, audit.txt, audit.json,
    map.png, released.csv) and private/ (applied.csv: the place that each check-in was taken for).

    Args:
        source: places or cells as .csv, a column of counts for each group.
        kind: as `CouplingMechanism`; `scale_m` goes with "entropic", metres.
        target: "barycentre" (least total movement, a linear program), "mean" (of the groups' laws) or a group's name.
        groups: the columns; by default every column of numbers.
        confidence: of the level that is computed from the counts.
        checkins, member_of: release these, of members of this group.

    Raises:
        InputError, CertificateError (a solver failed; nothing is written).
    """
    if kind not in KINDS:
        raise InputError(f"--kind {kind}: expected one of {', '.join(KINDS)}")
    if (kind == "entropic") != (scale_m is not None):
        raise InputError("--scale goes with --kind entropic, and is needed there: 500m, say")
    if (checkins is None) != (member_of is None):
        raise InputError("--apply and --group go together: say whose check-ins they are")
    if not 0.0 < confidence < 1.0:
        raise InputError(f"--confidence {confidence}: expected a probability strictly between 0 and 1")
    check_output(out, force)
    progress("Reading")
    counted = read_group_counts(source, groups)
    own = None if member_of is None else _position(counted, member_of, "--group")
    applied = None if checkins is None else read_checkins(checkins, counted.places, counted.plane)
    distances = np.asarray(counted.places.distances, dtype=np.float64)
    progress(f"Choosing the target for {len(counted.names)} groups on {counted.places.size} places")
    aim = _target(counted, target, distances)
    progress("Coupling")
    if scale_m is None:
        mechanism = coupling_mechanism(counted.laws, aim, distances, kind=kind)
    else:
        mechanism = entropic_mechanism(counted.laws, aim, distances, scale_m)
    tables = tuple(IntegerTable.from_channel(one) for one in _settled(mechanism))
    progress("Auditing")
    level, variation = exact_level(exact_outputs(counted, tables))
    drawn = replace(mechanism, channels=tuple(table.channel for table in tables))
    report = ConcealReport(
        kind,
        target,
        scale_m,
        counted.places.size,
        tuple(
            group_numbers(name, law, table, distances)
            for name, law, table in zip(counted.names, counted.laws, tables, strict=True)
        ),
        level,
        variation,
        _from_counts(drawn, counted, confidence, variation) if counted.whole else None,
        0 if applied is None else len(applied.positions),
        0 if applied is None or own is None else int(np.sum(counted.counts[own][applied.positions] == 0.0)),
        out,
    )
    with output_folder(out, force) as folder:
        share = folder / "share"
        ConcealFile(tables, counted, aim, kind, scale_m).write(share / "mechanism.npz")
        (share / "audit.txt").write_text(report.text(), encoding="utf-8")
        (share / "audit.json").write_text(report.to_json(), encoding="utf-8")
        draw_conceal(_picture(counted, drawn, report), share / "map.png")
        if applied is not None and own is not None:
            progress("Releasing")
            released = tables[own].release(applied.positions)
            latitude, longitude = counted.plane.to_degrees(np.asarray(counted.places.locations))
            write_released(share / "released.csv", latitude[released], longitude[released], applied)
            write_applied(folder / "private" / "applied.csv", applied)
    return report


def _position(counted: GroupCounts, name: str, option: str) -> int:
    lowered = name.strip().lower()
    if lowered not in counted.names:
        raise InputError(f"{option} {name}: the groups are {', '.join(counted.names)}")
    return counted.names.index(lowered)


def _target(counted: GroupCounts, target: str, distances: np.ndarray) -> np.ndarray:
    """μ, (n,), without cells that hold next to nothing."""
    if target in RULES:
        if target in counted.names:
            raise InputError(f"--target {target} is also the name of a group; rename that column")
        law = barycentre(counted.laws, distances).target if target == "barycentre" else counted.laws.mean(axis=0)
    else:
        law = counted.laws[_position(counted, target, f"--target is {' or '.join(RULES)} or a group;")]
    kept = np.where(law >= _LEAST_MASS, law, 0.0)
    return kept / np.sum(kept)


def _settled(mechanism: CouplingMechanism) -> tuple[Channel, ...]:
    """The channels, entropic ones mixed with a little of the target: so no probability is too small for the table.

    The mixture has the same output law, and log ratios that are no larger.
    """
    if mechanism.kind != "entropic":
        return mechanism.channels
    rows = [
        (1.0 - _MIXED) * np.exp(np.asarray(one.log_matrix)) + _MIXED * mechanism.target for one in mechanism.channels
    ]
    return tuple(Channel.from_matrix(one / one.sum(axis=1, keepdims=True)) for one in rows)


def _from_counts(drawn: CouplingMechanism, counted: GroupCounts, confidence: float, variation: float) -> EstimatedLevel:
    """The level from the counts, with what the tables' laws already differ by under the counts themselves."""
    with double_precision():
        found = estimated_level(drawn, counted.counts, confidence)
    return replace(found, total_variation=min(found.total_variation + variation, 1.0))


def _picture(counted: GroupCounts, drawn: CouplingMechanism, report: ConcealReport) -> ConcealPicture:
    moved = np.stack([np.sum(np.exp(one.log_matrix) * drawn.distance, axis=1) for one in drawn.channels])
    with double_precision():
        published = drawn.outputs().mean(axis=0)
    return ConcealPicture(
        np.asarray(counted.places.locations),
        counted.names,
        counted.laws,
        moved,
        published,
        f"{report.kind} coupling, target: {report.target}; dots grow with the share of visits",
    )
