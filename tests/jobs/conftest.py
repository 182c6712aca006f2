"""Each test has its own record of releases."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def state(tmp_path_factory, monkeypatch):
    """The folder that holds the state of the user."""
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder
