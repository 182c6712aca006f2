"""The ledger: every release about a person, what all of them tell together, and the published outputs.

It counts a release before anything of it can be published. Its states: *reserved* (the noise is not drawn, or known to
one process only: nothing can have been published), *stored* (the output is in the ledger and may have been published),
*published* (its folder was written). All three count. docs/ledger.md describes the file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from jaxpriv.errors import InputError
from jaxpriv.jobs.ledger.file import LedgerFile
from jaxpriv.jobs.ledger.joint import Joint, SecretTogether
from jaxpriv.jobs.ledger.records import LedgerRelease
from jaxpriv.jobs.ledger.rows import insert_release, read_releases
from jaxpriv.traces.projection import LocalPlane


DEFAULT_PERSON = "one person"
RECORD = "private/record.json"  # the entry of the private record that goes with a release
MORE_RECORDS = "record/"  # begins the names of entries that were made for it later, under another key
_IS_RECORD = f"(output.name = '{RECORD}' OR output.name LIKE '{MORE_RECORDS}%')"


@dataclass(frozen=True)
class Person:
    """Somebody on record, and the plane that all their releases share."""

    name: str
    plane: LocalPlane


class _ChangedError(Exception):
    """The releases on record are not those that a certificate was computed for; undoes a transaction."""


class Ledger:
    """An open ledger; a context manager that closes it."""

    def __init__(self, path: Path, limit: float | None = None, *, create: bool = True):
        """Open a ledger or make one; `limit` is one in nats for the joint ε that is asked for now.

        Raises `InputError` as `LedgerFile` does.
        """
        self._file, self._asked = LedgerFile(path, create=create), limit
        with self._file.reading() as database:
            (self.key,) = database.execute("SELECT key FROM ledger").fetchone()

    @property
    def limit(self) -> float | None:
        """What the joint ε may be now, in nats: the smaller of the ledger's limit and the one asked for.

        The ledger's is the one that was asked for with the first release on record.
        """
        with self._file.reading() as database:
            return self._limit(database)

    def _limit(self, database: sqlite3.Connection) -> float | None:
        (kept,) = database.execute(
            "SELECT CASE WHEN EXISTS (SELECT 1 FROM release) THEN limit_nats END FROM ledger"
        ).fetchone()
        return min((one for one in (kept, self._asked) if one is not None), default=None)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *raised: object) -> None:
        self._file.close()

    def people(self) -> list[Person]:
        """Everybody on record, in order of their first release."""
        with self._file.reading() as database:
            rows = database.execute("SELECT name, latitude, longitude FROM person ORDER BY id").fetchall()
        return [Person(name, LocalPlane(latitude, longitude)) for name, latitude, longitude in rows]

    def whose(self, name: str | None) -> tuple[str, Person | None]:
        """The name to use and the person, if on record; without a name the only one. Raises `InputError`."""
        people = self.people()
        if name is None:
            if len(people) > 1:
                raise InputError(f"the ledger holds {len(people)} persons; say whose trace this is with --person NAME")
            return (people[0].name, people[0]) if people else (DEFAULT_PERSON, None)
        if not name.strip() or len(name) > 200 or not name.isprintable():
            raise InputError("--person is a name of at most 200 printable characters")
        return name, next((one for one in people if one.name == name), None)

    def releases(self, person: str) -> list[LedgerRelease]:
        """All releases of a person that count, in order."""
        with self._file.reading() as database:
            rows = database.execute(
                "SELECT release.* FROM release JOIN person ON person.id = person WHERE name = ? ORDER BY number",
                (person,),
            )
            return read_releases(database, rows)

    def find(self, person: str, content: bytes, request: bytes) -> LedgerRelease | None:
        """The release that answered this request for this content, or is reserved for it."""
        with self._file.reading() as database:
            rows = database.execute(
                "SELECT release.* FROM release JOIN person ON person.id = person "
                "WHERE name = ? AND content = ? AND request = ?",
                (person, content, request),
            )
            return next(iter(read_releases(database, rows)), None)

    def check_owner(self, person: str, content: bytes) -> None:
        """Raise `InputError` for content that is on record for somebody else: it would escape their account."""
        with self._file.reading() as database:
            _check_owner(database, person, content)

    def get(self, inputs: bytes) -> bytes | None:
        """A certificate that was computed before, by the digest of its inputs."""
        with self._file.reading() as database:
            row = database.execute("SELECT losses FROM certified WHERE inputs = ?", (inputs,)).fetchone()
        return None if row is None else row[0]

    def reserve(
        self,
        person: Person,
        release: LedgerRelease,
        joint: Joint,
        earlier: Sequence[LedgerRelease],
        limit: float | None,
        folder: str,
    ) -> int | None:
        """Count a release from now on, before its noise is drawn; return its number.

        `joint` must be certified for the `earlier` releases and this one. A reservation for the same content and
        request is replaced, its private record is inherited: nothing of it can have been published, and its process
        will notice. None, and nothing is kept, when the releases on record are not the `earlier` ones any more, the
        limit is another one, or the request has an output by now. Raises `InputError` as `check_owner` does.
        """
        with suppress(_ChangedError), self._file.writing() as database:
            if self._limit(database) != limit:
                raise _ChangedError
            _check_owner(database, person.name, release.content)
            plane = (person.plane.latitude, person.plane.longitude)
            database.execute(
                "INSERT OR IGNORE INTO person (name, latitude, longitude) VALUES (?, ?, ?)", (person.name, *plane)
            )
            known = database.execute(
                "SELECT id, latitude, longitude FROM person WHERE name = ?", (person.name,)
            ).fetchone()
            if known[1:] != plane:
                raise InputError(f"another run recorded another origin for {person.name!r} at the same time; run again")
            same = (known[0], release.content, release.request)
            inherited = database.execute(
                "SELECT name, output.content FROM output JOIN release ON release.id = output.release "
                "WHERE person = ? AND release.content = ? AND request = ? AND state = 'reserved'",
                same,
            ).fetchall()
            if not database.execute("SELECT 1 FROM release").fetchone():
                database.execute("UPDATE ledger SET limit_nats = ?", (self._asked,))
            database.execute(
                "DELETE FROM release WHERE person = ? AND content = ? AND request = ? AND state = 'reserved'", same
            )
            answered = database.execute(
                "SELECT 1 FROM release WHERE person = ? AND content = ? AND request = ?", same
            ).fetchone()
            rows = database.execute("SELECT draw, number FROM release WHERE person = ?", known[:1]).fetchall()
            if answered or {draw for draw, _ in rows} != {one.draw for one in earlier}:
                raise _ChangedError
            number = max((number for _, number in rows), default=0) + 1
            identity = insert_release(database, known[0], number, release, joint, limit, folder)
            _insert_outputs(database, identity, inherited)
            return number

    def note_record(self, draw: str, text: str, name: str = RECORD) -> bool:
        """Note the text of a private record before it is written, so that it is known as one of this ledger's.

        Each `name` has one text. False if the release is not on record, as when another run took it over.
        """
        with self._file.writing() as database:
            found = database.execute("SELECT id FROM release WHERE draw = ?", (draw,)).fetchone()
            if found is not None:
                _insert_outputs(database, found[0], [(name, text.encode("ascii"))])
            return found is not None

    def noted_records(self, draw: str) -> list[str]:
        """Texts of the private records that were noted for a release, the first one first."""
        with self._file.reading() as database:
            rows = database.execute(
                f"SELECT output.content FROM output JOIN release ON release.id = output.release WHERE {_IS_RECORD} "
                "AND draw = ? ORDER BY output.rowid",
                (draw,),
            )
            return [content.decode("ascii") for (content,) in rows.fetchall()]

    def store(self, draw: str, outputs: Mapping[str, bytes]) -> bool:
        """Keep the output of a reserved release, from when on it may be published; False if it is not reserved."""
        with self._file.writing() as database:
            changed = database.execute(
                "UPDATE release SET state = 'stored' WHERE draw = ? AND state = 'reserved'", (draw,)
            )
            if changed.rowcount != 1:
                return False
            identity = database.execute("SELECT id FROM release WHERE draw = ?", (draw,)).fetchone()[0]
            _insert_outputs(database, identity, outputs.items())
            return True

    def publish(self, draw: str) -> None:
        """Note that the folder of a stored release was written."""
        with self._file.writing() as database:
            database.execute("UPDATE release SET state = 'published' WHERE draw = ? AND state = 'stored'", (draw,))

    def outputs(self, draw: str) -> dict[str, bytes]:
        """The stored output of a release: names and contents."""
        with self._file.reading() as database:
            rows = database.execute(
                "SELECT name, output.content FROM output JOIN release ON release.id = output.release WHERE draw = ?",
                (draw,),
            )
            return dict(rows.fetchall())

    def together(self, person: str) -> list[SecretTogether]:
        """Every secret of a person by all releases on record, as it was certified for the newest one."""
        with self._file.reading() as database:
            rows = database.execute(
                "SELECT together.label, named_by, together.epsilon_alone, together.epsilon_together FROM together "
                "WHERE release = (SELECT release.id FROM release JOIN person ON person.id = person WHERE name = ? "
                "ORDER BY number DESC LIMIT 1) ORDER BY position",
                (person,),
            )
            return [SecretTogether(*row) for row in rows.fetchall()]

    def kept_records(self, person: str) -> set[str]:
        """Texts of the private records that were noted for releases of a person."""
        with self._file.reading() as database:
            rows = database.execute(
                "SELECT output.content FROM output JOIN release ON release.id = output.release "
                f"JOIN person ON person.id = person WHERE {_IS_RECORD} AND person.name = ?",
                (person,),
            ).fetchall()
        return {content.decode("ascii") for (content,) in rows}


def _check_owner(database: sqlite3.Connection, person: str, content: bytes) -> None:
    other = database.execute(
        "SELECT name FROM release JOIN person ON person.id = person WHERE content = ? AND name != ?", (content, person)
    ).fetchone()
    if other is not None:
        raise InputError(
            f"this trace is on record for {other[0]!r}, and what was released of it counts for them; under another "
            "name it would escape their account. Pass that name with --person"
        )


def _insert_outputs(database: sqlite3.Connection, release: int, outputs: Iterable[tuple[str, bytes]]) -> None:
    database.executemany(
        "INSERT OR REPLACE INTO output VALUES (?, ?, ?)", [(release, name, content) for name, content in outputs]
    )
