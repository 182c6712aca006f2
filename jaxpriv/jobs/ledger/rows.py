"""Releases as rows of a ledger's tables."""

from __future__ import annotations

import sqlite3

import numpy as np

from jaxpriv.jobs.ledger.file import now
from jaxpriv.jobs.ledger.joint import Joint
from jaxpriv.jobs.ledger.records import LedgerRelease, LedgerSecret
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.reporting import AXES
from jaxpriv.mechanisms.gaussian import GaussianMechanism


def insert_release(
    database: sqlite3.Connection,
    person: int,
    number: int,
    release: LedgerRelease,
    joint: Joint,
    limit: float | None,
    folder: str,
) -> int:
    """Write a reserved release and what it tells with the earlier ones, inside a transaction; return its id."""
    times = release.time_us
    values = (
        None, person, number, release.draw, "reserved", now(), release.content, release.request,
        times.astype("<i8").tobytes(), int(times[0]), int(times[-1]), release.order, release.resolution_m,
        release.grid_exponent, release.alone, joint.epsilon, limit, folder,
    )  # fmt: skip
    identity = database.execute(f"INSERT INTO release VALUES ({', '.join('?' * len(values))})", values).lastrowid
    assert identity is not None
    for axis, mechanism, priors in zip(AXES, release.mechanisms, release.priors, strict=True):
        factor = np.ascontiguousarray(mechanism.factor, dtype="<f8")
        database.execute(
            "INSERT INTO mechanism VALUES (?, ?, ?, ?)", (identity, axis, factor.tobytes(), float(mechanism.floor_sd))
        )
        database.executemany(
            "INSERT INTO prior VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (identity, axis, i, one.kernel, one.lengthscale_s, one.period_s, one.sd_m, one.nugget_m)
                for i, one in enumerate(priors)
            ],
        )
    database.executemany(
        "INSERT INTO secret VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (identity, i, one.label, np.array(one.time_us, "<i8").tobytes(), one.between, one.radius_m, one.alone)
            for i, one in enumerate(release.secrets)
        ],
    )
    database.executemany(
        "INSERT INTO together VALUES (?, ?, ?, ?, ?, ?)",
        [
            (identity, i, one.label, one.release or number, one.alone, one.together)
            for i, one in enumerate(joint.secrets)
        ],
    )
    database.executemany("INSERT OR IGNORE INTO certified VALUES (?, ?)", list(joint.certified.items()))
    return identity


def read_releases(database: sqlite3.Connection, rows: sqlite3.Cursor) -> list[LedgerRelease]:
    """Read whole releases from rows of the table `release`, inside a transaction."""
    names = [one[0] for one in rows.description]
    return [_release(database, dict(zip(names, row, strict=True))) for row in rows.fetchall()]


def _release(database: sqlite3.Connection, row: dict) -> LedgerRelease:
    identity = (row["id"],)
    times = np.frombuffer(row["time_us"], dtype="<i8").astype(np.int64)
    mechanisms, priors = [], []
    for axis in AXES:
        factor, floor = database.execute(
            "SELECT factor, floor_sd_m FROM mechanism WHERE release = ? AND axis = ?", (*identity, axis)
        ).fetchone()
        columns = len(factor) // (8 * len(times))
        mechanisms.append(GaussianMechanism(np.frombuffer(factor, "<f8").reshape(len(times), columns), floor))
        found = database.execute(
            "SELECT kernel, lengthscale_s, sd_m, nugget_m, period_s FROM prior WHERE release = ? AND axis = ? "
            "ORDER BY position",
            (*identity, axis),
        )
        priors.append(tuple(PriorChoice(*values, source="on record in the ledger") for values in found.fetchall()))
    secrets = database.execute(
        "SELECT label, time_us, in_between, radius_m, epsilon_alone FROM secret WHERE release = ? ORDER BY position",
        identity,
    ).fetchall()
    return LedgerRelease(
        row["number"], row["draw"], row["state"], row["recorded"], row["content"], row["request"], times,
        (mechanisms[0], mechanisms[1]), (priors[0], priors[1]),
        tuple(
            LedgerSecret(label, tuple(np.frombuffer(at, "<i8").tolist()), bool(between), radius, alone)
            for label, at, between, radius, alone in secrets
        ),
        row["renyi_order"], row["grid_exponent"], row["resolution_m"],
    )  # fmt: skip
