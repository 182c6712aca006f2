"""Check a folder that `protect` or `batch` wrote: what is shared against itself, the promise against the mechanism."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.jobs.batch.verifying import is_batch, verify_batch
from jaxpriv.jobs.release_file import OBSERVED, SIMULATED_TITLE, TITLE, ReleaseFile, read_release
from jaxpriv.report.verification import Check, Verification
from jaxpriv.traces.files import read_trace, sanitised_text


_KINDS = ("csv", "gpx", "plt", "geojson")
# Half a unit of the seventh decimal, and what two versions of the projection may differ by (a tenth of a millimetre).
_DEGREES = 0.5e-7 + 1e-9


def verify_folder(folder: Path, progress: Callable[[str], None] = lambda step: None) -> Verification:
    """Check the folder of a release or of a batch of them (`verify_batch`), or its share folder alone.

    The shared files: nothing but the trace and release.json; positions that are the released integers, brought back
    to degrees; the same times; no other field. With the private folder: the certificate of the stored mechanism is
    computed again under the stated priors, and no reported ε may be below it. Raises `InputError` for a folder or file
    that cannot be read; whatever disagrees is a failed check.
    """
    if is_batch(folder):
        return verify_batch(folder, progress)
    share, private = _parts(folder)
    simulated_name = not (share / "release.json").is_file()
    mark = ".SIMULATED" if simulated_name else ""
    if (share / f"series{mark}.csv").is_file():
        return _verify_series(share, private, mark)
    release = read_release(share / f"release{mark}.json")
    traces = [share / f"trace{mark}.{kind}" for kind in _KINDS if (share / f"trace{mark}.{kind}").is_file()]
    simulated = release.points.simulated or simulated_name
    checks = [_is_release(simulated), _only_expected(share, {f"release{mark}.json", *(one.name for one in traces)})]
    if release.points.simulated != simulated_name:
        checks.append(Check("names", False, "a name and the content disagree on whether this is simulated output"))
    rows = None
    if len(traces) == 1:
        rows, found = _trace_checks(traces[0], release)
        checks += found
    else:
        checks.append(Check("trace", False, f"there are {len(traces)} sanitised traces beside release.json, not one"))
    if private is None:
        checks.append(Check("promise", None, "the private folder is not here, and with it the mechanism and report"))
        return Verification(tuple(checks), simulated)
    from jaxpriv.jobs.recertify import check_private

    if (private / OBSERVED).is_file():
        observed = read_release(private / OBSERVED)
        checks.append(_on_grid(release, observed))
        release = observed
    found = check_private(private, release, rows)
    return Verification((*checks, *found.checks), simulated or found.simulated, found.epsilon, found.order)


def _verify_series(share: Path, private: Path | None, mark: str) -> Verification:
    """The same for the folder of a series."""
    from jaxpriv.jobs.series.verify import private_checks, shared_checks

    expected = {f"release{mark}.json", f"series{mark}.csv"}
    shared, rows, found = shared_checks(share / f"series{mark}.csv", share / f"release{mark}.json")
    simulated = shared.values.simulated or bool(mark)
    checks = [_is_release(simulated), _only_expected(share, expected), *found]
    if shared.values.simulated != bool(mark):
        checks.append(Check("names", False, "a name and the content disagree on whether this is simulated output"))
    if private is None:
        checks.append(Check("promise", None, "the private folder is not here, and with it the mechanism and report"))
        return Verification(tuple(checks), simulated)
    more, epsilon, order = private_checks(private, shared, rows)
    return Verification((*checks, *more), simulated, epsilon, order)


def _parts(folder: Path) -> tuple[Path, Path | None]:
    names = ("release.json", "release.SIMULATED.json")
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; name the one that jaxpriv protect or batch wrote")
    for share in (folder / "share", folder):
        if any((share / name).is_file() for name in names):
            private = folder / "private"
            return share, private if share != folder and private.is_dir() else None
    raise InputError(f"{folder} has no share/release.json: it is not a folder that jaxpriv protect or batch wrote")


def _is_release(simulated: bool) -> Check:
    if simulated:
        return Check("release", False, "simulated output, made from a seed: it is not a release and not private")
    return Check("release", True, "drawn with the operating system's randomness, by its own account")


def _only_expected(share: Path, expected: set[str]) -> Check:
    others = [one for one in share.iterdir() if one.name not in expected or one.is_symlink()]
    if others:
        return Check(
            "files", False, f"{len(others)} more than the trace and release.json in the share folder: remove them"
        )
    return Check("files", True, "the share folder holds the trace and release.json, and nothing else")


def _on_grid(shared: ReleaseFile, observed: ReleaseFile) -> Check:
    """What is shared was drawn on a grid of times from the release at the times of the fixes."""
    same = (
        shared.plane == observed.plane
        and shared.points.exponent == observed.points.exponent
        and (shared.points.tau is None) == (observed.points.tau is None)
        and (shared.points.tau or 0.0) >= (observed.points.tau or 0.0)
    )
    regular = len(set(np.diff(np.array(shared.time_us)).tolist())) <= 1
    if same and regular:
        return Check("regular times", True, "what is shared is at regular times, on the plane and grid of the release")
    return Check("regular times", False, "what is shared is not at regular times, or not of the private release")


def _trace_checks(path: Path, release: ReleaseFile) -> tuple[int, list[Check]]:
    """Return the number of rows of the trace, and what was found."""
    try:
        trace = read_trace(path)
    except InputError as problem:
        raise InputError(f"{path.name}: {problem}") from None
    rows = trace.point_of_row
    # One row of each point stands for it: writing the points again shows any row that differs from it.
    first = np.unique(rows, return_index=True)[1]
    latitude, longitude = trace.latitude[first], trace.longitude[first]
    title = SIMULATED_TITLE if release.points.simulated else TITLE
    again = sanitised_text(trace, latitude, longitude, title)
    plain = path.read_bytes() == again.encode("utf-8")
    form = Check(
        "fields",
        plain,
        "the trace holds times and positions and nothing else"
        if plain
        else "the trace is not written as jaxpriv writes it: something was added, removed, or put in another order",
    )
    if tuple(trace.time_us.tolist()) != release.time_us:
        return trace.n_rows, [form, Check("times", False, "the times of the trace are not those of release.json")]
    expected = release.positions()
    off = np.maximum(np.abs(latitude - expected[0]), np.abs((longitude - expected[1] + 180) % 360 - 180))
    wrong = int(np.count_nonzero(~(off <= _DEGREES)))
    return trace.n_rows, [
        form,
        Check("times", True, "the times of the trace are those of release.json"),
        Check("positions", False, f"{wrong} positions of the trace are not the released integers")
        if wrong
        else Check("positions", True, "every position of the trace is a pair of the released integers"),
    ]
