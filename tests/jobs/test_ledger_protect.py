"""`protect` with a ledger: answers from it, refusals before anything is drawn, runs that die, and what it keeps."""

from __future__ import annotations

import json
import math
import sqlite3
import stat
import struct
from contextlib import closing, nullcontext
from dataclasses import replace

import pytest

import jaxpriv as jp
from jaxpriv.jobs.grid_times import GridRequest
from jaxpriv.jobs.ledger import protect as job
from jaxpriv.jobs.ledger.account import Ledger, Person
from jaxpriv.jobs.ledger.answer import Answered
from jaxpriv.jobs.ledger.joint import joint_losses
from jaxpriv.jobs.ledger.protect import LedgerRequest, protect_with_ledger
from jaxpriv.jobs.ledger.text import summarise
from jaxpriv.jobs.noise import ReleasedPoints
from jaxpriv.jobs.odds import odds_record
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.protect import protect, protect_file
from jaxpriv.jobs.requests import PriorRequest, SecretRequest
from jaxpriv.jobs.target import Target
from jaxpriv.jobs.verify import verify_folder
from jaxpriv.report.plain import bet_sentence
from jaxpriv.report.rounding import significant
from jaxpriv.report.text import report_text
from jaxpriv.report.together import together_warning
from jaxpriv.traces.files import read_trace
from jaxpriv.traces.projection import STRETCH, LocalPlane


START = 1_714_982_400
PRIOR, TARGET = PriorChoice("matern32", 60.0, 300.0, 1.0), Target(200.0, 1.0)
DAY = 86_400


def _rows(day=0, count=6):
    return [
        (START + day * DAY + 20 * i, 45 + math.sin(i * i + day) * 1e-3, -30 + math.cos(i + day) * 1e-3)
        for i in range(count)
    ]


def _csv(rows, delimiter=","):
    body = [delimiter.join((str(us), f"{lat:.7f}", f"{lon:.7f}")) for us, lat, lon in rows]
    return "\n".join([delimiter.join(("time", "lat", "lon")), *body]) + "\n"


@pytest.fixture(scope="module")
def noise(tmp_path_factory):
    """The design for six fixes, made once; it does not depend on positions or on the day."""
    path = tmp_path_factory.mktemp("design") / "in.csv"
    path.write_text(_csv(_rows()))
    return protect(read_trace(path), [(START + 60) * 10**6], TARGET, PRIOR, simulate_seed=1).noise


@pytest.fixture
def run(tmp_path, noise, monkeypatch):
    monkeypatch.setattr("jaxpriv.jobs.protect.design_noise", lambda *arguments: noise)

    def call(out, day=0, *, second=60, text=None, name=None, ledger="l.ledger", limit=None, person=None, **options):
        path = tmp_path / (name or f"day{day}.csv")
        path.write_text(_csv(_rows(day)) if text is None else text)
        request = LedgerRequest(tmp_path / ledger, person, limit)
        options = {"target": TARGET, "prior": PRIOR} | options
        target, prior = options.pop("target"), options.pop("prior")
        secrets = [(START + day * DAY + second) * 10**6]
        return protect_with_ledger(path, tmp_path / out, secrets, target, prior, request, **options)

    return call


def _shared(folder):
    return {path.name: path.read_bytes() for path in (folder / "share").iterdir()}


def _states(tmp_path):
    with closing(sqlite3.connect(tmp_path / "l.ledger")) as database:
        return [state for (state,) in database.execute("SELECT state FROM release ORDER BY id")]


def test_a_repeated_request_is_answered_again(run, tmp_path, monkeypatch):
    first = run("one")
    assert first.report.ledger.number == 1 and first.report.ledger.epsilon == pytest.approx(first.report.epsilon)
    assert "the first one" in report_text(first.report) and "not in the ledger" in first.report.guarantee
    monkeypatch.setattr(job, "draw_release", None)  # nothing is drawn
    again = run("two")
    assert isinstance(again, Answered) and again.record.number == 1 and again.record.again
    assert _shared(tmp_path / "one") == _shared(tmp_path / "two")
    assert "Release number 1 again; nothing new is published" in again.text
    assert (tmp_path / "two/private/report.txt").read_text() == again.text
    for out in ("one", "two"):
        assert verify_folder(tmp_path / out).verified
    assert sorted(path.name for path in (tmp_path / "two/private").iterdir()) == [
        "mechanism.npz", "record.json", "report.json", "report.txt",
    ]  # fmt: skip
    assert len(summarise(tmp_path / "l.ledger").persons[0].releases) == 1


def test_the_same_numbers_for_a_file_of_another_form(run, tmp_path):
    run("one")
    text = _csv(_rows()[::-1], ";")
    again = run("two", text=text, name="other.csv")
    assert isinstance(again, Answered)
    one, two = (_shared(tmp_path / out) for out in ("one", "two"))
    assert one["release.json"] == two["release.json"]
    assert one["trace.csv"].replace(b",", b";") == two["trace.csv"]
    assert verify_folder(tmp_path / "two").verified


def test_another_request_is_certified_together_and_refused(run, tmp_path, monkeypatch):
    run("one", limit=3.0)
    monkeypatch.setattr(job, "draw_release", None)  # refused before anything is drawn
    with pytest.raises(
        jp.InfeasibleError, match=r"together with the 1 earlier .* ε = \d.*limit is 3.*Release number 1"
    ):
        run("two", second=80)
    with pytest.raises(jp.InfeasibleError, match="limit is 3"):
        run("two", second=80, limit=100.0)  # the ledger keeps its limit
    assert not (tmp_path / "two").exists() and _states(tmp_path) == ["published"]
    assert isinstance(run("three", limit=0.5), Answered)  # costs nothing, so no limit counts


def test_without_a_limit_the_joint_value_is_said(run, tmp_path):
    run("one")
    # The mechanism is the one for the other secret: the same noise drawn twice.
    report = run("two", target=Target(200.0, 1.0, delta=0.05)).report
    (secret,) = report.ledger.secrets
    assert (secret.release, report.ledger.number, report.ledger.counted, report.ledger.limit) == (2, 2, 2, None)
    # Equal noise twice is the noise halved: at most, and in this design nearly, twice the loss.
    assert 1.5 * secret.alone < secret.together <= 2 * secret.alone
    text = " ".join(report_text(report).split())
    assert "release number 2 about this person" in text and "never as a sum" in text
    assert report.releases.number == 1 and not any("no number is claimed" in one for one in report.warnings)
    found = summarise(tmp_path / "l.ledger", check=True)
    assert found.right and found.persons[0].epsilon_together == secret.together
    assert "Certified anew" in found.text() and '"limit": null' in found.to_json()


def test_days_far_apart_do_not_add_up(run):
    for day in range(3):
        report = run(f"out{day}", day, limit=1.5).report
    assert report.ledger.counted == 3 and len(report.ledger.secrets) == 3
    assert report.ledger.epsilon == pytest.approx(report.epsilon, rel=1e-9)


def test_persons_are_never_combined(run, tmp_path):
    run("one", person="Ada", limit=1.5)
    near = {
        "text": _csv([(time, latitude + 1e-3, longitude) for time, latitude, longitude in _rows()]),
        "name": "b.csv",
    }
    report = run("two", person="Bob", **near).report
    assert report.ledger.counted == 1 and report.ledger.epsilon == pytest.approx(report.epsilon)
    assert report.releases.overlapping == 1  # the same times: in company, they combine
    with pytest.raises(jp.InputError, match="holds 2 persons; say whose"):
        run("three")
    assert isinstance(run("three", person="Bob", **near), Answered)
    with pytest.raises(jp.InfeasibleError):
        run("four", person="Ada", target=Target(200.0, 1.0, delta=0.05))
    with pytest.raises(jp.InputError, match="printable"):
        run("four", person="a\nb")
    assert [one.name for one in summarise(tmp_path / "l.ledger").persons] == ["Ada", "Bob"]


@pytest.mark.parametrize("reached", ["published", "reserved"])
def test_one_trace_is_of_one_person(run, tmp_path, monkeypatch, reached):
    """Under another name it would escape the limit; neither --again nor another request changes that."""
    with monkeypatch.context() as patch:
        if reached == "reserved":
            patch.setattr("jaxpriv.jobs.ledger.account.Ledger.store", _die)
        with pytest.raises(KeyboardInterrupt) if reached == "reserved" else nullcontext():
            run("one", person="anna", limit=1.5)
    for options in ({}, {"again": True}, {"target": Target(200.0, 1.0, delta=0.05), "again": True}):
        with pytest.raises(jp.InputError, match="this trace is on record for 'anna'"):
            run("two", person="ana", **options)
    assert not (tmp_path / "two").exists() and _states(tmp_path) == [reached]
    # A run of both at once: the transaction looks, too.
    with Ledger(tmp_path / "l.ledger") as book:
        (release,) = book.releases("anna")
        plane = book.people()[0].plane
        with pytest.raises(jp.InputError, match="on record for 'anna'"):
            book.reserve(Person("ana", plane), replace(release, draw="x"), joint_losses([release]), [], 1.5, "")
        assert [one.name for one in book.people()] == ["anna"]


def test_releases_outside_the_ledger_are_noticed(run, tmp_path):
    run("one")  # writes the file; on record here and in the ledger
    with pytest.raises(jp.InputError, match="--again"):  # a run without the ledger knows of it
        protect_file(tmp_path / "day0.csv", tmp_path / "x", [(START + 60) * 10**6], TARGET, PRIOR)
    protect_file(tmp_path / "day0.csv", tmp_path / "x", [(START + 60) * 10**6], TARGET, PRIOR, again=True)
    other = Target(200.0, 1.0, delta=0.05)
    with pytest.raises(jp.InputError, match="this ledger does not hold that release"):
        run("two", target=other)
    report = run("two", target=other, again=True).report
    assert any("release number 3 of the same positions" in one for one in report.warnings)
    assert isinstance(run("three"), Answered)


def test_one_plane_for_a_person(run):
    run("one")
    with pytest.raises(jp.InputError, match="the ledger has the origin 45,-30 for this person"):
        run("two", 1, origin=LocalPlane(46.0, -30.0))
    run("two", 1, origin=LocalPlane(45.0, -30.0))
    far = _csv([(time, latitude + 3, longitude) for time, latitude, longitude in _rows(2)])
    with pytest.raises(jp.InputError, match=r"250 km from the origin that the ledger has.*another ledger"):
        run("three", 2, text=far)


def _die(*arguments, **options):
    raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["note", "keep", "draw", "store", "write", "publish"])
def test_a_run_that_dies_is_finished_by_the_same_command(run, tmp_path, state, monkeypatch, where):
    """Wherever it dies: what was drawn is published once, or never."""
    place = {
        "note": "jaxpriv.jobs.ledger.account.Ledger.note_record",
        "keep": "jaxpriv.jobs.private_record.PrivateRecord.keep_if_free",
        "draw": "jaxpriv.jobs.ledger.protect.draw_release",
        "store": "jaxpriv.jobs.ledger.account.Ledger.store",
        "write": "jaxpriv.jobs.ledger.protect.write_release",
        "publish": "jaxpriv.jobs.ledger.account.Ledger.publish",
    }[where]
    with monkeypatch.context() as patch:
        patch.setattr(place, _die)
        with pytest.raises(KeyboardInterrupt):
            run("one", limit=1.5)
    assert (tmp_path / "one").exists() == (where == "publish")
    reserved = where in ("note", "keep", "draw", "store")
    assert _states(tmp_path) == ["reserved" if reserved else "stored"]
    # It counts, though nothing may have been published.
    with pytest.raises(jp.InfeasibleError):
        run("two", target=Target(200.0, 1.0, delta=0.05))
    done = run("one", force=True)
    assert isinstance(done, Answered) != reserved
    assert _states(tmp_path) == ["published"]
    assert verify_folder(tmp_path / "one").verified
    with closing(sqlite3.connect(tmp_path / "l.ledger")) as database:
        (stored,) = database.execute("SELECT content FROM output WHERE name = 'share/release.json'").fetchone()
    assert stored == (tmp_path / "one/share/release.json").read_bytes()
    # The private record has it, too, and once.
    (kept,) = (state / "jaxpriv").glob("*.json")
    assert kept.read_bytes() == (tmp_path / "one/private/record.json").read_bytes()
    with pytest.raises(jp.InputError, match="--again"):
        protect_file(tmp_path / "day0.csv", tmp_path / "x", [(START + 60) * 10**6], TARGET, PRIOR)


def test_what_may_be_published_is_on_the_private_record(run, tmp_path, monkeypatch):
    """A run dies once its output is stored: no plain run takes the trace for unpublished; then both are known of."""
    with monkeypatch.context() as patch:
        patch.setattr(job, "write_release", _die)
        with pytest.raises(KeyboardInterrupt):
            run("one")
    assert _states(tmp_path) == ["stored"] and not (tmp_path / "one").exists()
    plain = (tmp_path / "day0.csv", tmp_path / "x", [(START + 60) * 10**6], TARGET, PRIOR)
    with pytest.raises(jp.InputError, match="--again"):
        protect_file(*plain)
    protect_file(*plain, again=True)
    with pytest.raises(jp.InputError, match=r"release number 1 of them may not be published yet.*--again"):
        run("one")
    assert not (tmp_path / "one").exists()
    done = run("one", again=True)
    assert isinstance(done, Answered)
    (warning,) = done.warnings
    assert "released outside this ledger" in warning and "no number is claimed" in warning
    assert warning in json.loads(done.json)["warnings"]
    # Published by now: it costs nothing more, and the warning stays.
    assert run("two").warnings == done.warnings
    assert "released outside this ledger" in " ".join((tmp_path / "two/private/report.txt").read_text().split())


def test_the_entry_is_kept_beside_that_of_another_run(run, tmp_path, state, monkeypatch):
    """A record that was lost, and another release of the same content under its number."""
    run("one")
    (kept,) = (state / "jaxpriv").glob("*.json")
    kept.unlink()
    protect_file(tmp_path / "day0.csv", tmp_path / "x", [(START + 60) * 10**6], TARGET, PRIOR)
    assert kept.exists()
    for out in ("two", "three"):
        assert isinstance(run(out), Answered)
        names = sorted(path.name.split(".")[1] for path in (state / "jaxpriv").glob("*.json"))
        assert names == ["1", "2"]  # one entry for each release, however often it is written


def test_another_state_folder_gets_an_entry_under_its_own_key(run, tmp_path, monkeypatch):
    run("one")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    assert isinstance(run("two"), Answered) and isinstance(run("three"), Answered)
    (kept,) = (tmp_path / "other/jaxpriv").glob("*.json")
    assert kept.read_bytes() == (tmp_path / "two/private/record.json").read_bytes()
    assert kept.read_bytes() != (tmp_path / "one/private/record.json").read_bytes()
    with pytest.raises(jp.InputError, match="--again"):
        protect_file(tmp_path / "day0.csv", tmp_path / "x", [(START + 60) * 10**6], TARGET, PRIOR)
    # The new entry is the ledger's own, and no release outside it.
    assert run("four", target=Target(200.0, 1.0, delta=0.05)).report.releases.number == 1


def test_the_limit_comes_with_the_first_release(run, tmp_path, monkeypatch):
    """A run that fails before it leaves none behind, nor the lack of one."""
    with monkeypatch.context() as patch:
        patch.setattr(job, "plan", _die)
        for limit in (None, 7.0):
            with pytest.raises(KeyboardInterrupt):
                run("one", limit=limit)
    with pytest.raises(jp.InfeasibleError, match=r"the limit is 0\.5"):
        run("one", limit=0.5)
    assert summarise(tmp_path / "l.ledger").limit is None
    run("one", limit=1.5)
    assert summarise(tmp_path / "l.ledger").limit == 1.5
    assert run("two", 1, limit=9.0).report.ledger.limit == 1.5
    assert run("three", 2, limit=1.25).report.ledger.limit == 1.25  # for one run
    assert summarise(tmp_path / "l.ledger").limit == 1.5


def test_a_limit_that_another_run_set_meanwhile_holds(run, monkeypatch):
    """The other run's person is another one, so that only the limit changes."""
    real, calls = job.joint_losses, []

    def losses(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            run("other", 1, person="Bob", limit=1.1)
        return real(*arguments)

    monkeypatch.setattr(job, "joint_losses", losses)
    assert run("one", person="Ada", limit=5.0).report.ledger.limit == 1.1


def test_plain_words_hold_for_whoever_has_all_releases(run, tmp_path):
    """Two releases with equal noise are one with the noise halved: what that leaves is computed by another formula."""
    first = run("one").report
    second = run("two", target=Target(200.0, 1.0, delta=0.05)).report
    joint = second.ledger.epsilon
    # μ² = 2ε/λ for two places at the radius; precision 1/sd² + μ²/r².
    sd = math.hypot(PRIOR.sd_m, PRIOR.nugget_m)
    left = 1 / math.sqrt(1 / sd**2 + joint / (200.0 * STRETCH) ** 2)
    known = odds_record(joint, 2.0, 0.05).exact_factor
    assert second.ledger.secrets[0].odds_factor == known > second.odds.exact_factor
    said = significant(left, 3, "down")
    assert left < second.posterior_halfwidth_east_m - 1
    again = run("three")
    assert isinstance(again, Answered)
    for text, delta in ((report_text(second), 0.05), (again.text, 0.01)):
        plain = " ".join(text.split("In plain words")[1].split("What is promised")[0].split())
        assert f"after all 2 releases on record, to no better than ±{said} m east and north" in plain
        assert bet_sentence(200.0, odds_record(joint, 2.0, delta).exact_factor, delta, releases=2) in plain
        promised = " ".join(text.split("What is promised")[1].split())
        assert promised.startswith("* Alone, for somebody who sees no other release: * An attacker's odds")
    page = (tmp_path / "two/private/report.html").read_text()
    assert f"after all 2 releases on record, to no better than ±{said} m" in page
    assert '<h1 id="result">Alone, for somebody who sees no other release: at the protected time, an' in page
    text = report_text(first)
    assert "Alone, for" not in text and "after it, to no better than" in " ".join(text.split())


def test_releases_that_tell_far_more_together_are_warned_of(run, tmp_path):
    quiet = run("one", target=Target(200.0, 1.0, delta=0.05)).report
    assert together_warning(quiet.ledger) is None
    run("two", target=Target(200.0, 1.0, delta=0.04))  # at most twice
    report = run("three").report
    assert report.ledger.epsilon > 2 * report.epsilon
    assert report.warnings[0].startswith("The releases on record about this person together tell far more")
    text = report_text(report)
    assert text.index("WARNING: The releases on record") < text.index("What is protected")
    assert text.count("tell far more") == 1
    again = run("four", target=Target(200.0, 1.0, delta=0.05))
    assert isinstance(again, Answered) and again.warnings == report.warnings[:1]
    assert json.loads(again.json)["warnings"][0] == report.warnings[0]


def test_another_run_takes_a_reservation_over(run, tmp_path, monkeypatch):
    """While one run draws, another makes the same release: both write the same numbers."""
    real = job.draw_release
    inner = {}

    def draw(*arguments):
        monkeypatch.setattr(job, "draw_release", real)
        inner["done"] = run("inner")
        return real(*arguments)

    monkeypatch.setattr(job, "draw_release", draw)
    outer = run("outer")
    assert isinstance(outer, Answered) and not isinstance(inner["done"], Answered)
    assert _shared(tmp_path / "outer") == _shared(tmp_path / "inner")
    assert _states(tmp_path) == ["published"]


def test_a_release_that_another_run_made_meanwhile_counts(run, tmp_path, monkeypatch):
    """Between the certificate and the reservation: it is computed again, with the other one."""
    real = job.joint_losses
    calls = []

    def losses(releases, known):
        found = real(releases, known)
        calls.append(len(releases))
        if len(calls) == 1:
            run("other", target=Target(200.0, 1.0, delta=0.05))
        return found

    monkeypatch.setattr(job, "joint_losses", losses)
    report = run("one").report
    assert report.ledger.counted == 2 and calls == [1, 1, 2]
    assert report.ledger.epsilon > 1.5 * report.epsilon


def test_the_ledger_holds_no_position_of_the_trace(run, tmp_path, monkeypatch):
    # Far away, lest a published position be the true one by chance.
    points = ReleasedPoints((10_000,) * 6, (20_000,) * 6, 0, 1e-20)
    monkeypatch.setattr(job, "draw_release", lambda *arguments: points)
    run("one")
    content = (tmp_path / "l.ledger").read_bytes()
    assert stat.S_IMODE((tmp_path / "l.ledger").stat().st_mode) == 0o600
    for _, latitude, longitude in _rows()[1:]:  # the first is the public origin
        for value in (latitude, longitude):
            assert f"{value:.7f}".encode() not in content
            for width in ("<d", ">d"):
                assert struct.pack(width, round(value, 7)) not in content
    # The published numbers are in it, and the secret time.
    assert (tmp_path / "one/share/release.json").read_bytes()[:500] in content


def test_what_is_the_same_request(run, tmp_path):
    run("one")
    path = tmp_path / "prior.json"
    path.write_text("x")
    time_us = read_trace(tmp_path / "day0.csv").time_us
    chosen = SecretRequest.at([(START + 60) * 10**6]).on(read_trace(tmp_path / "day0.csv"))
    near = SecretRequest.at([(START + 61) * 10**6]).on(read_trace(tmp_path / "day0.csv"))
    given = PriorRequest(given=PRIOR)
    base = job.request_digest(time_us, chosen, TARGET, given)
    assert job.request_digest(time_us, near, TARGET, given) == base  # the same fix
    source = PriorChoice("matern32", 60.0, 300.0, 1.0, source="said otherwise")
    assert job.request_digest(time_us, chosen, TARGET, PriorRequest(given=source)) == base
    others = [
        job.request_digest(time_us, chosen, Target(200.0, 1.1), given),
        job.request_digest(time_us, chosen, Target(201.0, 1.0), given),
        job.request_digest(time_us, chosen, TARGET, PriorRequest(given=PriorChoice("matern32", 60.0, 300.0, 2.0))),
        job.request_digest(time_us, chosen, TARGET, PriorRequest()),
        job.request_digest(time_us, chosen, TARGET, PriorRequest(file=path)),
        job.request_digest(time_us, SecretRequest(every=True).on(read_trace(tmp_path / "day0.csv")), TARGET, given),
    ]
    path.write_text("y")
    others.append(job.request_digest(time_us, chosen, TARGET, PriorRequest(file=path)))
    assert len({base, *others}) == len(others) + 1
    with pytest.raises(jp.InputError, match=r"gone\.json: cannot be read"):
        job.request_digest(time_us, chosen, TARGET, PriorRequest(file=tmp_path / "gone.json"))


def test_requests_that_are_none(run, tmp_path):
    for limit in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(jp.InputError, match="limit"):
            run("one", limit=limit)
    with pytest.raises(jp.InputError, match="must not lie in the output folder"):
        run("one", ledger="one/l.ledger")
    assert not (tmp_path / "l.ledger").exists() and not (tmp_path / "one").exists()


def test_a_grid_of_times(run, tmp_path):
    """What is published is drawn from the release on record; it is written again, too."""
    grid = GridRequest(30.0)
    first = run("one", grid=grid, limit=1.5)
    assert first.on_grid is not None and first.report.ledger.number == 1
    again = run("two", grid=GridRequest(30.0))
    assert isinstance(again, Answered)
    assert _shared(tmp_path / "one") == _shared(tmp_path / "two")
    other = run("three", grid=grid, text=_csv(_rows(), ";"), name="other.csv")
    assert isinstance(other, Answered)
    one, three = (_shared(tmp_path / out)["trace.csv"] for out in ("one", "three"))
    assert one.replace(b",", b";") == three and len(one.splitlines()) == 1 + len(first.on_grid.time_us)
    for out in ("one", "two", "three"):
        assert verify_folder(tmp_path / out).verified
    with pytest.raises(jp.InfeasibleError):
        run("four")  # without the grid: another release
    with pytest.raises(jp.InputError, match="more than 5000 rows"):
        run("four", grid=GridRequest(1e-3))


def test_a_request_with_an_output_is_never_reserved_again(run, tmp_path):
    """Even when the list of earlier releases holds that output already, as when another run stored it just now."""
    run("one")
    with Ledger(tmp_path / "l.ledger") as book:
        name, person = book.whose(None)
        (stored,) = book.releases(name)
        joint = joint_losses([stored], book)
        assert person is not None and joint.certified == {}
        assert book.reserve(person, replace(stored, draw="other"), joint, [stored], None, "") is None
        assert book.reserve(person, replace(stored, draw="other", request=b"new"), joint, [], None, "") is None
        assert book.reserve(person, replace(stored, draw="other", request=b"new"), joint, [stored], None, "") == 2
        assert not book.store(stored.draw, {}) and book.store("other", {}) and not book.store("other", {})
