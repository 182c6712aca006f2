"""The file of a ledger: SQLite, readable by its owner only, with short transactions that exclude other writers."""

from __future__ import annotations

import importlib.metadata
import os
import secrets
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from jaxpriv.errors import InputError


APPLICATION, VERSION = 0x6A707631, 1
WAIT_S = 60.0  # for another writer; no transaction of ours lasts longer than it takes to write a few megabytes

# A rollback journal: one file, whole again at the next opening whenever a writer is killed or the power goes.
_SETTINGS = ("foreign_keys = ON", "synchronous = EXTRA", "journal_mode = DELETE", "trusted_schema = OFF")

# docs/ledger.md describes every table and column; a test compares them.
_SCHEMA = (
    "CREATE TABLE ledger (key BLOB NOT NULL, limit_nats REAL, created TEXT NOT NULL, jaxpriv_version TEXT NOT NULL)",
    "CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, latitude REAL NOT NULL, "
    "longitude REAL NOT NULL)",
    "CREATE TABLE release (id INTEGER PRIMARY KEY AUTOINCREMENT, person INTEGER NOT NULL REFERENCES person, "
    "number INTEGER NOT NULL, draw TEXT NOT NULL UNIQUE, "
    "state TEXT NOT NULL CHECK (state IN ('reserved', 'stored', 'published')), recorded TEXT NOT NULL, "
    "content BLOB NOT NULL, request BLOB NOT NULL, time_us BLOB NOT NULL, first_us INTEGER NOT NULL, "
    "last_us INTEGER NOT NULL, renyi_order REAL NOT NULL, resolution_m REAL NOT NULL, grid_exponent INTEGER NOT NULL, "
    "epsilon_alone REAL NOT NULL, epsilon_together REAL NOT NULL, limit_nats REAL, folder TEXT NOT NULL, "
    "UNIQUE (person, number), UNIQUE (person, content, request))",
    "CREATE TABLE mechanism (release INTEGER NOT NULL REFERENCES release ON DELETE CASCADE, axis TEXT NOT NULL, "
    "factor BLOB NOT NULL, floor_sd_m REAL NOT NULL, PRIMARY KEY (release, axis))",
    "CREATE TABLE prior (release INTEGER NOT NULL REFERENCES release ON DELETE CASCADE, axis TEXT NOT NULL, "
    "position INTEGER NOT NULL, kernel TEXT NOT NULL, lengthscale_s REAL NOT NULL, period_s REAL, sd_m REAL NOT NULL, "
    "nugget_m REAL NOT NULL, PRIMARY KEY (release, axis, position))",
    "CREATE TABLE secret (release INTEGER NOT NULL REFERENCES release ON DELETE CASCADE, position INTEGER NOT NULL, "
    "label TEXT NOT NULL, time_us BLOB NOT NULL, in_between INTEGER NOT NULL, radius_m REAL NOT NULL, "
    "epsilon_alone REAL NOT NULL, PRIMARY KEY (release, position))",
    "CREATE TABLE together (release INTEGER NOT NULL REFERENCES release ON DELETE CASCADE, position INTEGER NOT NULL, "
    "label TEXT NOT NULL, named_by INTEGER NOT NULL, epsilon_alone REAL NOT NULL, epsilon_together REAL NOT NULL, "
    "PRIMARY KEY (release, position))",
    "CREATE TABLE output (release INTEGER NOT NULL REFERENCES release ON DELETE CASCADE, name TEXT NOT NULL, "
    "content BLOB NOT NULL, PRIMARY KEY (release, name))",
    "CREATE TABLE certified (inputs BLOB PRIMARY KEY, losses BLOB NOT NULL)",
)  # fmt: skip


class LedgerFile:
    """An open ledger file. Everything that is read or written goes through `writing` or `reading`."""

    def __init__(self, path: Path, *, create: bool = True):
        """Open a file, or make a new one of mode 0600.

        Raises `InputError` for a file that others may read, that is no ledger or one of another version, and for a
        place that cannot be written.
        """
        self.path = path
        _make_or_check(path, create)
        try:
            # No implicit transactions: each is begun and ended in `writing`.
            self._connection = sqlite3.connect(path, timeout=WAIT_S, isolation_level=None)
            for setting in _SETTINGS:
                self._connection.execute(f"PRAGMA {setting}")
        except sqlite3.Error as problem:
            raise InputError(_unusable(path, problem)) from None
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that no other writer interrupts: all of it is kept, or nothing if the block raises."""
        with self._errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent view for several queries."""
        with self._errors():
            self._connection.execute("BEGIN")
            try:
                yield self._connection
            finally:
                with suppress(sqlite3.Error):
                    self._connection.execute("COMMIT")

    def _prepare(self) -> None:
        with self.reading() as database:
            empty = self._is_empty(database)
        if empty:
            with self.writing() as database:
                if self._is_empty(database):  # else another run was faster
                    for statement in _SCHEMA:
                        database.execute(statement)
                    database.execute(
                        "INSERT INTO ledger VALUES (?, NULL, ?, ?)",
                        (secrets.token_bytes(32), now(), importlib.metadata.version("jaxpriv")),
                    )
                    database.execute(f"PRAGMA application_id = {APPLICATION}")
                    database.execute(f"PRAGMA user_version = {VERSION}")

    def _is_empty(self, database: sqlite3.Connection) -> bool:
        """Whether the file is still to become a ledger; raises `InputError` for another one's file."""
        application, version = (
            database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        if not application and not version and not database.execute("SELECT 1 FROM sqlite_master").fetchone():
            return True
        if application != APPLICATION:
            raise InputError(f"{self.path.name}: an SQLite file that is no ledger of jaxpriv; choose another name")
        if version != VERSION:
            raise InputError(
                f"{self.path.name}: this jaxpriv reads version {VERSION} of the ledger, and this is version {version}; "
                "use the jaxpriv that wrote it"
            )
        return False

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as problem:
            raise InputError(_unusable(self.path, problem)) from None


def now() -> str:
    """This second, as ISO 8601 in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _make_or_check(path: Path, create: bool) -> None:
    """Make an empty file that only its owner can read, or check that an existing one is such a file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        found = None
    except OSError as problem:
        raise InputError(f"{path}: cannot be read ({problem.strerror or 'unknown reason'})") from None
    if found is None:
        if not create:
            raise InputError(f"{path}: there is no such ledger")
        try:
            # Empty, it is a ledger to be: a run that is killed here leaves nothing wrong behind.
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:  # another run was faster
            found = path.stat()
        except OSError as problem:
            raise InputError(f"{path}: cannot be written ({problem.strerror or 'unknown reason'})") from None
    if found is None:
        return
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"{path}: not a file; name the file of a ledger")
    if os.name == "posix" and found.st_mode & 0o077:
        raise InputError(
            f"{path}: others on this machine can read or write it, and a ledger is as sensitive as the raw trace; "
            f"run chmod 600 {path}"
        )


def _unusable(path: Path, problem: sqlite3.Error) -> str:
    """Say what is wrong with a file. SQLite's own words hold names of tables, never values."""
    if isinstance(problem, sqlite3.OperationalError) and "locked" in str(problem):
        return f"{path.name}: another run is writing to this ledger and has not finished in {WAIT_S:g} s; try again"
    if "not a database" in str(problem) or "malformed" in str(problem):
        return f"{path.name}: not the file of a ledger, or a damaged one; restore it from a copy"
    return f"{path.name}: the ledger cannot be used ({problem})"
