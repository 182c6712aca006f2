"""Double precision for every test, and the folder of real files when there is one."""

from __future__ import annotations

import os
from pathlib import Path

import jax
import numpy as np
import pytest


jax.config.update("jax_enable_x64", True)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240229)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real traces and series; tests that need it are skipped when JAXPRIV_DATA is not set."""
    folder = os.environ.get("JAXPRIV_DATA")
    if not folder:
        pytest.skip("JAXPRIV_DATA is not set: no folder of real traces")
    return Path(folder)


@pytest.fixture(autouse=True, scope="session")
def _no_record_of_this_user(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield
