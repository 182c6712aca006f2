"""Reports of earlier versions are read; what is damaged or of a later version is refused."""

from __future__ import annotations

import json

import pytest

from jaxpriv.errors import InputError
from jaxpriv.jobs.stored import read_object
from jaxpriv.report.reading import record_from
from jaxpriv.report.record import FORMAT, VERSION, LedgerRecord, Report


_PRIOR = (
    '{"source": "given", "kernel": "matern32", "lengthscale_s": 60.0, "period_s": null, "sd_m": 300.0, "nugget_m": 1.0}'
)
_AXIS = (
    f'"priors": [{_PRIOR}], "epsilons": [[0.5]], "loss_per_m2": 1e-05, "floor_sd_m": 2.0, "labels": ["given"], '
    '"worst_prior": 0, "lattice": [true], "method": "closed form", "steps": null, "outcome": "certified"'
)
# As the first jaxpriv with this format wrote it: nothing of `odd`, `unit` and `ledger`.
OLDER = f"""{{
  "format": "jaxpriv-report", "format_version": 1, "prior": {_PRIOR},
  "secrets": [{{"time": "2024-05-06T08:01:00Z", "fix_time": "2024-05-06T08:01:00Z", "fix_offset_s": 0.0,
    "together": []}}],
  "axes": [{{"name": "east", {_AXIS}}}, {{"name": "north", {_AXIS}}}],
  "simulated": false, "tau": 1e-12, "releases": {{"number": 1, "overlapping": 0}}, "guarantee": "A sentence.",
  "radius_m": 200.0, "plane_radius_m": 200.1, "order": 2.0, "epsilon": 0.5, "epsilon_asked": 0.5,
  "epsilon_east": 0.5, "epsilon_north": 0.5,
  "odds": {{"delta": 0.01, "exact": 2.3, "exact_factor": 10.0, "theorem": 5.2, "theorem_factor": 182.0, "curve": 1.6}},
  "prior_halfwidth_east_m": 298.0, "prior_halfwidth_north_m": 298.0, "posterior_halfwidth_east_m": 150.0,
  "posterior_halfwidth_north_m": 150.0, "rms_noise_m": 120.0, "largest_noise_m": 200.0, "smallest_noise_m": 20.0,
  "rms_lower_bound_m": 119.9, "gap": 1e-07,
  "independent": {{"rms_noise_m": 400.0, "epsilon": 3.0, "exact_factor": null}},
  "floor_sd_m": 2.0, "grid_m": 0.125, "grid_exponent": -3, "resolution_m": 0.5, "origin": [45.0, -30.0],
  "points": 9, "rows_read": 10, "rows_written": 10, "cleaning": [], "warnings": [], "not_claimed": ["A sentence."],
  "jaxpriv_version": "0.1.0", "estimate": true, "understood": [],
  "by_secret": [{{"label": "08:01", "epsilon": 0.5, "odds_factor": 10.0, "prior_halfwidth_m": [298.0, 298.0],
    "posterior_halfwidth_m": [150.0, 150.0], "independent_epsilon": 3.0}}],
  "budget_asked_m": null, "uncertainty_asked_m": null, "epsilon_lower_bound": null, "effort": "normal"
}}"""


def _read(folder, text: str) -> Report:
    path = folder / "report.json"
    path.write_text(text)
    return record_from(Report, read_object(path, FORMAT, VERSION), "report.json")


def test_an_earlier_report_is_read_with_the_documented_values(tmp_path):
    report = _read(tmp_path, OLDER)
    assert (report.odd, report.unit, report.ledger) == ((), "m", None)
    assert report.estimate
    assert report.axes[1].epsilons == ((0.5,),)
    # What it says is not lost when it is written again.
    assert json.loads(OLDER).items() <= json.loads(report.to_json()).items()


def test_an_earlier_ledger_entry_says_nothing_of_odds(tmp_path):
    secret = {"label": "08:01", "release": 1, "alone": 0.5, "together": 0.75}
    ledger = {"number": 2, "counted": 2, "limit": None, "epsilon": 0.75, "secrets": [secret], "again": False}
    found = _read(tmp_path, json.dumps(json.loads(OLDER) | {"ledger": ledger})).ledger
    assert isinstance(found, LedgerRecord)
    assert found.secrets[0].odds_factor is None
    assert found.secrets[0].together == 0.75


@pytest.mark.parametrize("name", ["axes", "estimate", "by_secret", "effort", "budget_asked_m"])
def test_what_every_report_had_must_be_there(tmp_path, name):
    content = json.loads(OLDER)
    del content[name]
    with pytest.raises(InputError, match=f"report.json: lacks {name}"):
        _read(tmp_path, json.dumps(content))


def test_a_report_of_a_later_version_is_refused(tmp_path):
    later = json.dumps(json.loads(OLDER) | {"format_version": VERSION + 1})
    with pytest.raises(
        InputError, match=f"report.json: this jaxpriv reads version {VERSION} of the format; use the one"
    ):
        _read(tmp_path, later)


def test_an_entry_that_is_not_known_is_not_made_up_for_by_a_missing_one(tmp_path):
    with pytest.raises(InputError, match="has 1 entries that are not known"):
        _read(tmp_path, json.dumps(json.loads(OLDER) | {"added": 1}))
