"""The private record: the same content is noticed, and the record gives nothing away."""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import struct
from dataclasses import replace

import pytest

from jaxpriv.errors import InputError
from jaxpriv.jobs import protect as job
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.private_record import RUN, PrivateRecord, read_entry, state_folder
from jaxpriv.jobs.protect import protect, protect_file
from jaxpriv.jobs.target import Target
from jaxpriv.traces.cleaning import clean
from jaxpriv.traces.csv_format import read_csv
from jaxpriv.traces.plt_format import read_plt


START, N = 1_225_094_400, 20
PRIOR, TARGET = PriorChoice("matern32", 60.0, 300.0, 1.0), Target(200.0, 1.0)
SECRET = (START + 66) * 10**6


def _points(n=N):
    # Times that are not regular: no two traces share runs of them by chance.
    return [(7 * i + i * i % 5, 45 + math.sin(i * i) * 1e-3, -30 + math.cos(i) * 1e-3) for i in range(n)]


def _rows(points):
    return [f"{START + t},{lat:.7f},{lon:.7f}" for t, lat, lon in points]


def _csv(rows):
    return clean(read_csv("time,lat,lon\n" + "\n".join(rows) + "\n"))


def _text(points):
    return "time,lat,lon\n" + "\n".join(_rows(points)) + "\n"


@pytest.fixture(scope="module")
def noise():
    return protect(_csv(_rows(_points())), [SECRET], TARGET, PRIOR, simulate_seed=1).noise


@pytest.fixture
def run(tmp_path, noise, monkeypatch):
    monkeypatch.setattr(job, "design_noise", lambda *arguments: noise)

    def call(out="out", text=None, name="in.csv", **options):
        (tmp_path / name).write_text(_text(_points()) if text is None else text)
        return protect_file(tmp_path / name, tmp_path / out, [SECRET], TARGET, PRIOR, **options).report

    return call


def test_the_same_content_asks_for_again(run, tmp_path):
    assert run().releases.number == 1
    with pytest.raises(InputError, match=r"on record as released \(.*/out\)\. Two releases .* pass --again"):
        run("second")
    assert not (tmp_path / "second").exists()
    report = run("second", again=True)
    assert report.releases.number == 2
    (warning,) = [one for one in report.warnings if "release number 2" in one]
    assert "do not add" in warning and "no number is claimed" in warning
    assert run("third", again=True).releases.number == 3
    with pytest.raises(InputError, match="--again"):
        run("out", force=True)


def test_the_same_content_in_another_file(run, tmp_path):
    run()
    rows = _rows(_points())
    header = "when;latitude;longitude;who\n".replace("when", "time")
    other = header + "\n".join(row.replace(",", ";") + ";me" for row in [*rows[::-1], rows[3]]) + "\n"
    with pytest.raises(InputError, match="--again"):
        run("second", text=other, name="another.csv")


def test_content_is_that_of_the_cleaned_rows(state):
    record, out = PrivateRecord.open(), state
    entry = record.entry(_csv(_rows(_points())), out)
    day = 39748 + 8 / 24
    plt = [
        f"{lat:.7f},{lon:.7f},0,492,{day + t / 86400:.10f},2008-10-27,08:{t // 60:02d}:{t % 60:02d}"
        for t, lat, lon in _points()
    ]
    header = ["x", "WGS 84", "x", "x", "0,2,255,track,0,0,2,0", "0"]
    assert record.entry(clean(read_plt("\r\n".join([*header, *plt]))), out).content == entry.content
    nudged = _points()
    nudged[4] = (nudged[4][0], nudged[4][1] + 1e-7, nudged[4][2])
    assert record.entry(_csv(_rows(nudged)), out).content != entry.content
    later = [(t + (i == 4), lat, lon) for i, (t, lat, lon) in enumerate(_points())]
    assert record.entry(_csv(_rows(later)), out).content != entry.content


def test_the_record_cannot_be_confirmed_without_the_key(run, state, tmp_path):
    run()
    (kept,) = (state / "jaxpriv").glob("*.json")
    text = kept.read_text()
    assert text == (tmp_path / "out/private/record.json").read_text()
    rows = [(START * 10**6 + t * 10**6, round(lat, 7), round(lon, 7)) for t, lat, lon in _points()]
    packed = b"".join(struct.pack("<qdd", *row) for row in rows)
    guesses = [packed, b"content\0" + packed, _text(_points()).encode()]
    assert not any(hashlib.sha256(guess).hexdigest() in text for guess in guesses)
    # Another user, another key, another digest of the same content.
    trace = _csv(_rows(_points()))
    record = PrivateRecord.open()
    assert record.entry(trace, tmp_path).content in text
    assert replace(record, key=bytes(32)).entry(trace, tmp_path).content not in text
    assert set(json.loads(text)) == {"format", "format_version", "content", "number", "recorded", "folder", "runs"}
    # The runs are digests of times: other positions at the same times give the same.
    elsewhere = _csv(_rows([(t, lat - 1, lon + 1) for t, lat, lon in _points()]))
    assert record.entry(elsewhere, tmp_path).runs == record.entry(trace, tmp_path).runs


def test_only_the_user_can_read_it(run, state):
    run()
    for path, mode in ((state / "jaxpriv", 0o700), *((one, 0o600) for one in (state / "jaxpriv").iterdir())):
        assert stat.S_IMODE(path.stat().st_mode) == mode, path
    assert (state / "jaxpriv/key").stat().st_size == 32


def test_parts_and_longer_versions_are_pointed_out(run):
    # Twelve fixes in common. The design is that of the other times; the record does not mind.
    run(text=_text(_points(N + 8)[8:]), name="later.csv")
    report = run("second")
    assert (report.releases.number, report.releases.overlapping) == (1, 1)
    assert any("1 earlier release(s) on record have fixes at the same times" in one for one in report.warnings)


def test_what_is_not_noticed(state):
    """The limits that the documents state."""
    record = PrivateRecord.open()
    whole = record.entry(_csv(_rows(_points())), state)
    thinned = record.entry(_csv(_rows(_points()[::2])), state)
    short = record.entry(_csv(_rows(_points()[: RUN - 1])), state)
    shifted = record.entry(_csv(_rows([(t + 1000, lat, lon) for t, lat, lon in _points()])), state)
    for other in (thinned, short, shifted):
        assert other.content != whole.content and not other.runs & whole.runs
    assert whole.runs & record.entry(_csv(_rows(_points()[5 : 5 + RUN])), state).runs


def test_a_lost_record_is_found_in_the_folder_that_is_replaced(run, state):
    run()
    for path in (state / "jaxpriv").glob("*.json"):
        path.unlink()
    with pytest.raises(InputError, match="--again"):
        run(force=True)
    assert run(force=True, again=True).releases.number == 2


def test_simulations_are_not_recorded(run, state):
    run(simulate_seed=1)
    assert not (state / "jaxpriv").exists()
    run("second")
    assert run("third", simulate_seed=1).releases is None


def test_nothing_is_recorded_when_nothing_is_published(run, state, tmp_path, monkeypatch):
    monkeypatch.setattr("pathlib.Path.rename", lambda self, target: (_ for _ in ()).throw(OSError(5, "no")))
    with pytest.raises(InputError, match="cannot write"):
        run()
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["in.csv"]


def test_two_runs_at_once(state, tmp_path):
    record = PrivateRecord.open()
    entry = record.entry(_csv(_rows(_points())), tmp_path)
    record.keep(entry)
    with pytest.raises(InputError, match="at the same time"):
        record.keep(entry)
    last, known = record.earlier(entry)
    assert (last, known.number) == (entry, 2)
    (path,) = (state / "jaxpriv").glob("*.json")
    assert read_entry(path) == entry


def test_state_that_cannot_be_kept(run, state, tmp_path, monkeypatch):
    (state / "file").write_text("x")
    monkeypatch.setenv("XDG_STATE_HOME", str(state / "file"))
    with pytest.raises(InputError, match="set XDG_STATE_HOME"):
        run()
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    run()
    (state / "jaxpriv/key").write_bytes(b"short")
    with pytest.raises(InputError, match="not a key of 32 bytes"):
        run("second")
    (state / "jaxpriv/key").unlink()
    (state / "jaxpriv/broken.json").write_text("{}")
    with pytest.raises(InputError, match=r"broken\.json"):
        run("second")


def test_where_the_state_lives(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    for value in ("", "relative/folder"):
        monkeypatch.setenv("XDG_STATE_HOME", value)
        assert state_folder() == tmp_path / ".local/state/jaxpriv"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    assert state_folder() == tmp_path / "elsewhere/jaxpriv"
