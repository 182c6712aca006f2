"""`protect` with a ledger: certify all releases together first, count the release, then draw, store and write it."""

from __future__ import annotations

import math
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from jaxpriv.errors import CertificateError, InfeasibleError, InputError
from jaxpriv.jobs.grid_times import GridRequest
from jaxpriv.jobs.ledger.account import Ledger, Person
from jaxpriv.jobs.ledger.answer import Answered, answer, outputs_of, told
from jaxpriv.jobs.ledger.joint import Joint, joint_losses
from jaxpriv.jobs.ledger.outside import check_outside, keep_record
from jaxpriv.jobs.ledger.records import (
    LedgerRelease,
    LedgerSecret,
    content_digest,
    request_digest,
    secret_times,
)
from jaxpriv.jobs.long_traces import check_short
from jaxpriv.jobs.noise import draw_release
from jaxpriv.jobs.output import check_output, output_folder, write_private
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.private_record import PrivateRecord
from jaxpriv.jobs.protect import Planned, Progress, Protected, describe, plan, write_release
from jaxpriv.jobs.requests import PriorRequest, SecretRequest
from jaxpriv.jobs.target import Target
from jaxpriv.report.claims import guarantee
from jaxpriv.report.record import LedgerRecord
from jaxpriv.report.rounding import given, significant
from jaxpriv.report.together import with_ledger
from jaxpriv.traces.contents import ReadOptions
from jaxpriv.traces.files import read_trace
from jaxpriv.traces.projection import EXTENT_M, STRETCH, LocalPlane
from jaxpriv.traces.trace import Trace


@dataclass(frozen=True)
class LedgerRequest:
    """Which ledger, whose trace, and a limit in nats for the joint ε.

    The limit of the first release on record is the ledger's own; of that and this one the smaller holds. Raises
    `InputError` for a limit that is none.
    """

    path: Path
    person: str | None = None
    limit: float | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and not (self.limit > 0 and math.isfinite(self.limit)):
            raise InputError(f"the limit is {self.limit}; it must be a positive, finite number of nats")


def protect_with_ledger(
    path: Path,
    out: Path,
    secrets: SecretRequest | Sequence[int],
    target: Target,
    prior: PriorRequest | PriorChoice,
    ledger: LedgerRequest,
    *,
    reading: ReadOptions | None = None,
    origin: LocalPlane | None = None,
    force: bool = False,
    again: bool = False,
    grid: GridRequest | None = None,
    progress: Progress = lambda step: None,
) -> Protected | Answered:
    """Read a trace file, protect it as `protect_file` does, and keep account of all releases about one person.

    Before noise is drawn the joint ε of all releases on record and this one is certified for every secret on record.
    With a `grid` of times what is published depends on the trace through the certified release alone, which stays
    private, so that the account of the release bounds it. A request that was answered before (same content, secrets,
    goal, prior and grid) is answered again by the same published numbers, at no cost. The release is on record before
    anything of it is written; a run that is killed afterwards is finished by the same command.

    Raises as `protect_file`; `InfeasibleError` when the joint ε would exceed the limit, and `InputError` for a ledger
    that cannot be used, another origin than the person's, content that is on record for another person, and, unless
    `again` is set, content that was released outside the ledger.
    """
    check_output(out, force)
    if ledger.path.resolve().is_relative_to(out.resolve()):
        raise InputError("the ledger must not lie in the output folder; name another file")
    progress("Reading the trace")
    trace = read_trace(path, options=reading, progress=progress)
    if grid is not None:
        grid.times(int(trace.time_us[0]), int(trace.time_us[-1]))  # refuses a bad window before any work
        check_short(trace.n_points, "--grid")
    asked = secrets if isinstance(secrets, SecretRequest) else SecretRequest.at(secrets)
    request = prior if isinstance(prior, PriorRequest) else PriorRequest(given=prior)
    with Ledger(ledger.path, ledger.limit) as book:
        name, person = book.whose(ledger.person)
        content = content_digest(trace, book.key)
        book.check_owner(name, content)
        digest = request_digest(trace.time_us, asked.on(trace), target, request, grid)
        record = PrivateRecord.open()

        def answered() -> Answered:
            """What another run, an earlier one or one at the same time, made for this request."""
            found = book.find(name, content, digest)
            if found is None or found.state == "reserved":
                raise InputError("the same release is being made by another run; run again to be given its output")
            return answer(book, name, found, trace, out, force, record, again)

        if person is not None:
            found = book.find(name, content, digest)
            if found is not None and found.state != "reserved":
                return answered()
            if origin not in (None, person.plane):
                latitude, longitude = (given(one) for one in (person.plane.latitude, person.plane.longitude))
                raise InputError(
                    f"the ledger has the origin {latitude},{longitude} for this person, and all releases about "
                    "a person need one plane; leave --origin out"
                )
            origin = person.plane
            _check_near(trace, origin)
        check_outside(book, name, record, trace, out, again)
        made = plan(trace, asked, target, request, origin=origin, progress=progress)
        person = Person(name, made.plane)
        release = _proposed(trace, made, target, content, digest)
        progress("Certifying all releases together")
        number, counted, joint = _reserve(book, person, release, out)
        if number is None:
            return answered()
        # Before anything is drawn, so that no run without the ledger takes this content for unpublished.
        recorded = keep_record(book, name, release.draw, record, trace, out, again)
        if recorded is None:
            return answered()
        entry, outside = recorded
        progress("Drawing the release")
        released = draw_release(made.mechanisms, made.metres, target.resolution_m)
        progress("Writing")
        done = describe(trace, target, made, released, outside, grid)
        by_all = [replace(one, release=one.release or number) for one in joint.secrets]
        said = LedgerRecord(number, counted, book.limit, joint.epsilon, told(by_all, done.report))
        report = with_ledger(replace(done.report, guarantee=guarantee(released.tau, ledger=True)), said)
        done = replace(done, report=report)
        if not book.store(release.draw, outputs_of(trace, done, entry)):
            return answered()
        with output_folder(out, force) as folder:
            write_release(folder, trace, done)
            write_private(folder / "private" / "record.json", entry.text())
        book.publish(release.draw)
        return done


def _check_near(trace: Trace, plane: LocalPlane) -> None:
    metres = plane.to_metres(trace.latitude, trace.longitude)
    if np.max(np.hypot(metres[:, 0], metres[:, 1])) > EXTENT_M:
        raise InputError(
            f"a position lies more than {EXTENT_M / 1000:.0f} km from the origin that the ledger has for this person, "
            "and releases can be compared in one plane only; use another ledger for what is so far away"
        )


def _proposed(trace: Trace, made: Planned, target: Target, content: bytes, request: bytes) -> LedgerRelease:
    axes = (made.noise.east, made.noise.north)
    radius = target.radius_m * STRETCH
    secrets = []
    for j, one in enumerate(made.secrets.secrets):
        alone = max(float(axis.design.certificate.epsilons[j].max()) for axis in axes)
        secrets.append(LedgerSecret(one.label, *secret_times(one, trace.time_us), radius, alone))
    return LedgerRelease(
        0,
        uuid.uuid4().hex,
        "reserved",
        "",
        content,
        request,
        trace.time_us,
        made.mechanisms,
        (made.source.axes[0].choices, made.source.axes[1].choices),
        tuple(secrets),
        target.order,
        made.noise.grid_exponent,
        target.resolution_m,
    )


def _reserve(book: Ledger, person: Person, release: LedgerRelease, out: Path) -> tuple[int | None, int, Joint]:
    """Certify and count a release, again as long as other runs are faster; no number when its request has an output."""
    while True:
        earlier = [
            one
            for one in book.releases(person.name)
            if (one.content, one.request) != (release.content, release.request) or one.state != "reserved"
        ]
        joint = joint_losses([*earlier, release], book)
        if any((one.content, one.request) == (release.content, release.request) for one in earlier):
            return None, len(earlier), joint
        limit = book.limit
        check_limit(joint, limit, release, earlier)
        number = book.reserve(person, release, joint, earlier, limit, str(out.absolute()))
        if number is not None:
            return number, len(earlier) + 1, joint


def check_limit(joint: Joint, limit: float | None, release: LedgerRelease, earlier: Sequence[LedgerRelease]) -> None:
    """Refuse a release that tells too much together with the earlier ones, and say what can be had instead.

    Raises `InfeasibleError` above the limit, `CertificateError` when no finite joint ε could be certified.
    """
    worst = max(joint.secrets, key=lambda one: one.together)
    if not math.isfinite(worst.together):
        raise CertificateError(
            "no finite joint epsilon of this release and the earlier ones could be certified; nothing was released"
        )
    if limit is None or worst.together <= limit:
        return
    same = [one.number for one in earlier if one.content == release.content]
    instead = (
        f"Release number {same[-1]} is of this trace: repeat its command, and its output is written again at no cost"
        if same
        else "Share an earlier release instead"
    )
    if not earlier:
        instead = "Ask for a smaller epsilon"
    elif any(not one.together <= limit for one in joint_losses(earlier).secrets):
        instead += "; the earlier releases alone exceed the limit already, so no further one is possible"
    else:
        instead += ", or ask for more noise (a smaller epsilon, a larger budget)"
    raise InfeasibleError(
        f"together with the {len(earlier)} earlier release(s) in the ledger this one would have ε = "
        f"{significant(worst.together, 3, 'up')} for {worst.label}, and the limit is {given(limit)}; alone, by the "
        f"last release that named it, that secret has ε = {significant(worst.alone, 3, 'up')}. Losses of releases do "
        f"not add: they combine. Nothing was drawn or released. {instead}"
    )
