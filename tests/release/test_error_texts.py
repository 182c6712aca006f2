"""Refusals say nothing about the trace: one constant text for each of two reasons, no digit, nothing chained."""

from __future__ import annotations

import logging
import warnings

import numpy as np
import pytest

from jaxpriv.errors import InputError
from jaxpriv.mechanisms.data_resolution import measured_resolution, refuse_coarse_data
from jaxpriv.mechanisms.grid_release import release


SENTINEL = 31.4159


class Loud:
    """An array-like whose own error quotes its contents."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError(f"could not convert {SENTINEL}")


BAD = {
    "nan": [SENTINEL, np.nan],
    "inf": [SENTINEL, np.inf],
    "too long": [SENTINEL] * 3,
    "two-dimensional": [[SENTINEL, SENTINEL]],
    "scalar": SENTINEL,
    "text": str(SENTINEL),
    "texts": [str(SENTINEL), "x"],
    "missing": None,
    "missing inside": [SENTINEL, None],
    "complex": [SENTINEL + 0j, 1],
    "boolean": [True, False],
    "ragged": [[SENTINEL], [1.0, 2.0]],
    "long double": np.array([SENTINEL, 1], dtype=np.longdouble),
    "large integers": np.array([2**53 + 1, 314159]),
    "huge integers": [10**400, 314159],
    "masked": np.ma.array([SENTINEL, 1.0], mask=[True, False]),
    "dates": np.array(["2031-04-15", "2031-04-15"], dtype="datetime64[s]"),
    "dictionary": {"lat": SENTINEL},
    "empty": [],
    "loud": Loud(),
}


def refusal(x) -> InputError:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a warning would be a second message
        with pytest.raises(InputError) as caught:
            release(x, np.ones((2, 1)), 1.0, resolution=0.0)
    return caught.value


@pytest.mark.parametrize("name", [name for name in BAD if np.finfo(np.longdouble).bits > 64 or name != "long double"])
def test_one_text_for_every_bad_trace(name, caplog, capsys):
    caplog.set_level(logging.DEBUG)
    error = refusal(BAD[name])
    assert str(error) == str(refusal([np.inf, np.inf]))
    assert not any(character.isdigit() for character in str(error))
    assert error.args == (str(error),) and error.__cause__ is None and error.__context__ is None
    assert not caplog.records and capsys.readouterr() == ("", "")


@pytest.mark.parametrize("x", [[2.0**54, SENTINEL], [SENTINEL, -(2.0**60)], [1e300, SENTINEL], [-1.7e308, 1.7e308]])
def test_one_text_for_every_trace_out_of_range(x, caplog, capsys):
    caplog.set_level(logging.DEBUG)
    error = refusal(x)
    assert str(error) == str(refusal([1e200, 0.0]))
    assert not any(character.isdigit() for character in str(error).replace("float64", ""))
    assert error.__cause__ is None and error.__context__ is None
    assert not caplog.records and capsys.readouterr() == ("", "")


def test_no_traceback_of_the_library_holds_noise():
    """A collector of frames sees the caller's trace and the outputs, never the draws."""
    error = refusal([2.0**54, SENTINEL])
    frame, names = error.__traceback__, set()
    while frame is not None:
        names |= set(frame.tb_frame.f_locals) if "jaxpriv" in frame.tb_frame.f_code.co_filename else set()
        frame = frame.tb_next
    assert "integers" in names and not names & {"draws", "normals", "shared", "own"}


def test_texts_about_the_step_of_the_data_are_constant():
    for bad in ([np.nan, SENTINEL], [], [None], ["a"]):
        with pytest.raises(InputError) as caught:
            measured_resolution(np.array(bad))
        assert not any(character.isdigit() for character in str(caught.value))
    with pytest.raises(InputError) as caught:
        refuse_coarse_data(np.array([SENTINEL, SENTINEL + 1, 2 * SENTINEL]), 1e-9)
    assert not any(character.isdigit() for character in str(caught.value))
