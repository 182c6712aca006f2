"""Priors that are fitted to the traces of a part together: those of one fit after the other, whatever the company."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jaxpriv.errors import InputError
from jaxpriv.fitting.fit import Fit, Settings
from jaxpriv.jobs.batch import priors as batch_priors
from jaxpriv.jobs.batch.input import input_traces
from jaxpriv.jobs.batch.part import BatchOptions
from jaxpriv.jobs.batch.placing import Placed, place
from jaxpriv.jobs.batch.priors import TOGETHER, find_part_priors
from jaxpriv.jobs.batch.run import run_batch
from jaxpriv.jobs.prior_sources import PriorSource
from jaxpriv.jobs.requests import PriorRequest, SecretRequest
from jaxpriv.jobs.target import Target
from jaxpriv.jobs.verify import verify_folder
from jaxpriv.traces.contents import ReadOptions


spec = importlib.util.spec_from_file_location("batch_data", Path(__file__).with_name("batch_data.py"))
assert spec is not None and spec.loader is not None
data = importlib.util.module_from_spec(spec)
spec.loader.exec_module(data)

TARGET = Target(50.0, budget_m=40.0, resolution_m=2.0)


def write(path: Path, sizes: tuple[int, ...], *, decimals: tuple[int, ...] = (6,), spread: float = 3e-4) -> Path:
    """Traces of a smooth process with errors of a few metres, printed with so many decimals in turn."""
    rng = np.random.default_rng(3)
    rows = ["uid,time,lat,lon"]
    for k, n in enumerate(sizes):
        times = np.cumsum(rng.integers(3, 7, n))
        apart = np.abs(times[:, None] - times) / 25.0
        covariance = spread**2 * (1 + apart) * np.exp(-apart) + (0.1 * spread) ** 2 * np.eye(n)
        moves = np.linalg.cholesky(covariance) @ rng.standard_normal((n, 2))
        d = decimals[k % len(decimals)]
        rows += [
            f"{k},{1_600_000_000 + t},{48 + y:.{d}f},{16 + x:.{d}f}" for t, (y, x) in zip(times, moves, strict=True)
        ]
    path.write_text("\n".join(rows) + "\n")
    return path


def placed(path: Path) -> list[Placed]:
    return [place(one, TARGET, SecretRequest()) for one in input_traces(path, ReadOptions())]


class Recorded:
    """Stands for `fit_batch`: the fit of values with a standard deviation s has that, and what was asked is kept."""

    def __init__(self, refused: tuple[float, ...] = (), stopped: tuple[float, ...] = ()) -> None:
        self.calls: list[tuple[int, str, float]] = []
        self.refused, self.stopped = refused, stopped

    def __call__(self, times, values, *, kernel, units, quantum):
        self.calls.append((len(times), kernel, quantum))
        return [self._fit(own, value, kernel, units, quantum) for own, value in zip(times, values, strict=True)]

    def _fit(self, times, values, kernel, units, quantum):
        sd = float(np.std(values))
        if sd in self.refused:
            return InputError("no likelihood")
        parameters = {"sd": sd, "lengthscale": 30.0, "noise_sd": 2.0}
        settings = Settings(kernel, units=units, quantum=quantum)
        return Fit(settings, parameters, 1.0, 0.0, (0.0,), (), sd not in self.stopped, len(times), 100.0, sd)


def test_coordinates_are_fitted_together_and_filled_up(tmp_path, monkeypatch):
    recorded = Recorded()
    monkeypatch.setattr(batch_priors, "fit_batch", recorded)
    traces = placed(write(tmp_path / "in.csv", (25,) * 40, decimals=(6, 7)))
    sources = find_part_priors(traces, PriorRequest(), TARGET)
    steps = sorted({one.trace.step_m for one in traces})
    assert len(steps) == 2
    # 40 coordinates of each step are one call for each kernel, and no call has another number of them.
    assert sorted(recorded.calls) == sorted((TOGETHER, k, s) for k in ("matern32", "matern52") for s in steps)
    for one, source in zip(traces, sources, strict=True):
        assert isinstance(source, PriorSource) and source.estimate and "estimate" in source.source
        for axis, values in zip(source.axes, one.metres.T, strict=True):
            # Half, once and twice the length scale, with the lower limit of the nugget and twice the resolution.
            assert [(c.kernel, c.lengthscale_s, c.nugget_m) for c in axis.choices] == [
                (kernel, scale * 30.0, nugget)
                for kernel in ("matern32", "matern52")
                for scale in (0.5, 1.0, 2.0)
                for nugget in (1.0, 4.0)
            ]
            assert {c.sd_m for c in axis.choices} == {float(np.std(values))}
    more = find_part_priors(traces, PriorRequest(which="wide", kernels=("matern12",)), TARGET)
    assert all(isinstance(one, PriorSource) and len(one.axes[0].choices) == 8 for one in more)


def test_what_is_not_fitted_together_is_fitted_alone(tmp_path, monkeypatch):
    traces = placed(write(tmp_path / "in.csv", (22, 23, 24, 25)))
    numbers = [len(one.metres) for one in traces]
    recorded = Recorded(
        refused=(float(np.std(traces[1].metres[:, 1])),), stopped=(float(np.std(traces[2].metres[:, 0])),)
    )
    monkeypatch.setattr(batch_priors, "fit_batch", recorded)
    alone: list[int] = []

    def one_by_one(seconds, metres, kernels, step_m):
        alone.append(len(metres))
        fits = [[Recorded()._fit(seconds, metres[:, a], k, ("m", "s"), step_m) for k in kernels] for a in (0, 1)]
        return fits[0], fits[1]

    monkeypatch.setattr(batch_priors, "fits_of_trace", one_by_one)
    found = find_part_priors(traces, PriorRequest(), TARGET)
    assert all(isinstance(one, PriorSource) for one in found) and alone == numbers[1:3]
    alone.clear()
    monkeypatch.setattr(batch_priors, "_LONGEST", 24)
    find_part_priors(traces, PriorRequest(), TARGET)
    assert alone == numbers[1:]
    alone.clear()
    recorded.calls.clear()
    find_part_priors(traces, PriorRequest(kernels=("matern32", "rbf")), TARGET)
    assert alone == numbers
    given = find_part_priors(traces, PriorRequest(given=data.PRIOR), TARGET)
    assert all(isinstance(one, PriorSource) and not one.estimate for one in given)
    for kernels, reason in ((("nonsense",), "cannot be fitted"), (("rbf", "rbf"), "named twice")):
        assert all(reason in str(one) for one in find_part_priors(traces, PriorRequest(kernels=kernels), TARGET))
    assert alone == numbers and not recorded.calls


def test_refusals_are_those_of_one_trace(tmp_path, monkeypatch):
    short = placed(write(tmp_path / "short.csv", (19,)))
    still = placed(write(tmp_path / "still.csv", (25,), spread=1e-6))
    # Rounding to 2 m is noise of 0.58 m, and they scatter by 0.55 m.
    (one,) = placed(write(tmp_path / "coarse.csv", (25,)))
    metres = 0.55 * (one.metres - np.mean(one.metres, axis=0)) / np.std(one.metres, axis=0)
    coarse = replace(one, metres=metres, trace=replace(one.trace, step_m=2.0))
    good = placed(write(tmp_path / "good.csv", (25, 26)))
    recorded = Recorded()
    monkeypatch.setattr(batch_priors, "fit_batch", recorded)
    bad = [*short, *still, coarse]
    found = find_part_priors([good[0], *bad, good[1]], PriorRequest(), TARGET)
    assert isinstance(found[0], PriorSource) and isinstance(found[-1], PriorSource)
    for one, reason in zip(bad, found[1:-1], strict=True):
        with pytest.raises(InputError) as error:
            PriorRequest().on(one.trace, one.metres, TARGET)
        assert reason == str(error.value)
    assert "fewer than 20 fixes" in str(found[1]) and "0.5 m or less" in str(found[2]) and "noise" in str(found[3])
    # None of them was handed on to be fitted, where it would change the number of coordinates.
    assert [count for count, *_ in recorded.calls] == [TOGETHER, TOGETHER]


@pytest.mark.slow
def test_priors_are_those_of_fit_and_do_not_depend_on_the_company(tmp_path):
    traces = placed(write(tmp_path / "in.csv", (30, 28, 31, 27, 29, 32)))
    request = PriorRequest(kernels=("matern32",))
    together = find_part_priors(traces, request, TARGET)
    for i in (0, 4):
        alone = request.on(traces[i].trace, traces[i].metres, TARGET)
        found = together[i]
        assert isinstance(found, PriorSource) and found.source == alone.source
        for axis, other in zip(found.axes, alone.axes, strict=True):
            assert len(axis.choices) == len(other.choices)
            for one, two in zip(axis.choices, other.choices, strict=True):
                # The search of a single fit stops when ℓ does not change, short of this one in flat directions.
                assert one.lengthscale_s == pytest.approx(two.lengthscale_s, rel=1e-3)
                assert one.sd_m == pytest.approx(two.sd_m, rel=1e-3)
                # Both searches for the nugget's limit stop within 1e-3 of a normal quantile.
                assert one.nugget_m == pytest.approx(two.nugget_m, rel=5e-3)
    # Bit for bit: one program, and no number of a trace meets one of another.
    assert find_part_priors(traces[3:4], request, TARGET) == together[3:4]
    assert find_part_priors(traces[::-1], request, TARGET) == together[::-1]


@pytest.mark.slow
def test_a_simulation_with_fitted_priors_is_the_same_whatever_the_parts(tmp_path):
    table = write(tmp_path / "in.csv", (30, 19, 28, 31, 27), decimals=(6, 7))
    options = BatchOptions(TARGET, PriorRequest(kernels=("matern32",)), seed=7)
    for size in (2, 32):
        summary = run_batch(table, tmp_path / f"{size}", options, part_traces=size)
        assert (summary.done, summary.refused, summary.estimate) == (4, 1, True)
    assert data.released(tmp_path / "2") == data.released(tmp_path / "32")
    assert data.records(tmp_path / "2") == data.records(tmp_path / "32")
    # Several priors for each trace, out of the record, and a certificate that shares no formula with the design's.
    assert [check.name for check in verify_folder(tmp_path / "2").checks if check.passed is False] == ["release"]
