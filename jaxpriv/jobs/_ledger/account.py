"""The ledger: every release about a person, what all of them tell together, and the published outputs.

It counts a release before anything of it can be published. Its states: *reserved* (the noise is not drawn, or known to
one process only: nothing can have been published), *stored* (the output is in the ledger and may have been published),
*published* (its folder was written). All three count. docs/ledger.md describes the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from jaxpriv.errors import InputError
from jaxpriv.jobs.ledger_file import LedgerFile
from jaxpriv.jobs.ledger_joint import Joint, SecretTogether
from jaxpriv.jobs.ledger_records import LedgerRelease
from jaxpriv.jobs.ledger_rows import insert_release, read_releases
from jaxpriv.traces.projection import LocalPlane


DEFAULT_PERSON = "one person"


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
        """Open a ledger, or make one with a limit in nats for the joint ε. Raises `InputError` as `LedgerFile` does."""
        self._file = LedgerFile(path, limit, create=create)
        with self._file.reading() as database:
            self.key, self.limit = database.execute("SELECT key, limit_nats FROM ledger").fetchone()

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
        request is replaced: nothing of it can have been published, and its process will notice. None, and nothing is
        kept, when the releases on record are not the `earlier` ones any more, or the request has an output by now.
        """
        with suppress(_ChangedError), self._file.writing() as database:
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
            insert_release(database, known[0], number, release, joint, limit, folder)
            return number

    def store(self, draw: str, outputs: Mapping[str, bytes]) -> bool:
        """Keep the output of a reserved release, from when on it may be published; False if it is not reserved."""
        with self._file.writing() as database:
            changed = database.execute(
                "UPDATE release SET state = 'stored' WHERE draw = ? AND state = 'reserved'", (draw,)
            )
            if changed.rowcount != 1:
                return False
            identity = database.execute("SELECT id FROM release WHERE draw = ?", (draw,)).fetchone()[0]
            database.executemany(
                "INSERT INTO output VALUES (?, ?, ?)", [(identity, name, content) for name, content in outputs.items()]
            )
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

    def kept_records(self) -> set[str]:
        """Texts of the private records that were written for releases of this ledger."""
        with self._file.reading() as database:
            rows = database.execute("SELECT content FROM output WHERE name = 'private/record.json'").fetchall()
        return {content.decode("ascii") for (content,) in rows}
