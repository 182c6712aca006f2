"""The arrays behind the page are checked before anything is drawn."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from jaxpriv.errors import InputError
from jaxpriv.report.page.details import covariance_rows


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"true_m": np.zeros((3, 2))}, "true_m has shape"),
        ({"epsilons": np.zeros((1, 1))}, "epsilons has shape"),
        ({"worst_priors": ("a", "b")}, "worst prior"),
        ({"secrets": (), "epsilons": np.zeros((0, 3))}, "at least one"),
    ],
)
def test_details_that_do_not_fit_are_refused(page, change, words):
    with pytest.raises(InputError, match=words):
        dataclasses.replace(page[1], **change)


def test_values_that_are_no_numbers_are_refused(page):
    _, details = page
    for name in ("halfwidth_m", "epsilons", "covariances"):
        values = getattr(details, name).copy()
        values[..., 0, 0] = math.nan
        with pytest.raises(InputError, match=f"{name} holds a value"):
            dataclasses.replace(details, **{name: values})
    with pytest.raises(InputError, match="must increase"):
        dataclasses.replace(details, time_us=details.time_us[::-1])
    with pytest.raises(InputError, match="none of 0 to"):
        dataclasses.replace(
            details, secrets=(dataclasses.replace(details.secrets[0], indices=(999,)), *details.secrets[1:])
        )


@pytest.mark.parametrize("n", [1, 7, 200, 201, 5000])
def test_noise_is_shown_at_few_rows_with_the_secrets_among_them(n):
    secret = [n // 3, n - 1]
    rows = covariance_rows(n, secret)
    assert len(rows) <= 200
    assert np.all(np.diff(rows) > 0)
    assert set(secret) <= set(rows.tolist())
    assert (rows[0], rows[-1]) == (0, n - 1)
    assert len(covariance_rows(n, range(n))) <= 200
