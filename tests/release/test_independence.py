"""Draws of different calls, threads and processes have nothing in common. Fresh entropy in every run."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from jaxpriv.mechanisms.bulk_normal import BulkNormals
from jaxpriv.mechanisms.exact_normal import exact_normals
from jaxpriv.mechanisms.grid_release import release


SIZE, EXPONENT = 4, -30


def noise() -> np.ndarray:
    """One release of zeros: (SIZE,) normals to 2^-30."""
    return release(np.zeros(SIZE), np.zeros((SIZE, 0)), 1.0, resolution=0.0, exponent=EXPONENT).values


def bulk_normals(count: int) -> list[int]:
    return BulkNormals(count, os.urandom).exact(np.arange(count))


def check_calls(count: int) -> None:
    """Draws of one call against each other and against those of 1, 2, 3, 10 and 100 calls later, signs as well.

    172 correlations of at least `count` - 100 pairs: one beyond 7 standard errors has probability 5e-10.
    """
    draws = np.array([noise() for _ in range(count)])
    assert len({row.tobytes() for row in draws}) == count and len(np.unique(draws)) > 0.999 * draws.size
    for table in (draws, np.abs(draws)):
        table = (table - table.mean(0)) / table.std(0)
        for lag in (0, 1, 2, 3, 10, 100):
            products = table[lag:].T @ table[: count - lag] / (count - lag)
            if lag == 0:
                products -= np.eye(SIZE)
                assert np.max(np.abs(np.diag(products))) < 1e-9
            # (1 + 1/N) from centring; kurtosis of |z| is bounded, so the normal limit holds at this count
            assert np.max(np.abs(products)) < 7 / np.sqrt(count - lag)


def test_calls_are_uncorrelated():
    check_calls(1_500)


@pytest.mark.slow
def test_ten_thousand_calls_are_uncorrelated():
    check_calls(10_000)


def test_draws_within_a_call_are_uncorrelated():
    """Neighbours, and the two draws of a pair, of one long release; squares too, as the pair shares its radius."""
    z = release(np.zeros(100_000), np.zeros((100_000, 0)), 1.0, resolution=0.0, exponent=EXPONENT).values
    for values in (z, z**2):
        values = (values - values.mean()) / values.std()
        for lag in (1, 2, 3, 7):
            # z² has kurtosis 15: the standard error of a mean of products of two independent ones is still 1/√N
            assert abs(np.mean(values[lag:] * values[:-lag])) < 7 / np.sqrt(len(z) - lag)
        assert abs(np.mean(values[::2] * values[1::2])) < 7 / np.sqrt(len(z) / 2)


@pytest.mark.parametrize("draw", [exact_normals, bulk_normals], ids=["exact", "bulk"])
def test_threads_share_no_draw(draw):
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.extend(draw(100))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len({z >> 32 for z in found}) == 800  # 128 leading bits


def test_threads_release_independently():
    made: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: made.extend(noise() for _ in range(50))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({row.tobytes() for row in made}) == 400


PRINT = """
import os
import numpy as np
from jaxpriv.mechanisms.bulk_normal import BulkNormals
from jaxpriv.mechanisms.exact_normal import exact_normals
from jaxpriv.mechanisms.grid_release import release

def lines():
    bulk = BulkNormals(20, os.urandom).exact(np.arange(20))
    made = release(np.zeros(6), np.zeros((6, 0)), 1.0, resolution=0.0, exponent=-40).integers.tolist()
    whole = "".join(f"{j & (2**60 - 1):015x}" for j in made)
    return "\\n".join([*map(str, exact_normals(20)), *map(str, bulk), str(int(whole, 16) << 32)])
"""
FORK = """
import warnings
warnings.simplefilter("ignore")  # threads of other libraries do not run in the children below
lines()  # draws before the fork, so that anything buffered would be shared
for child in range(4):
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, lines().encode())
        os._exit(0)
    os.wait()
    print(os.read(read, 1 << 16).decode())
print(lines())
"""
SPAWN = """
import multiprocessing
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2, maxtasksperchild=1) as pool:
        print("\\n".join(pool.starmap(lines, [()] * 4, chunksize=1)))
    print(lines())
"""


def printed(tmp_path, script: str) -> list[int]:
    path = tmp_path / "draw.py"
    path.write_text(PRINT + script)
    run = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
    return [int(z) for z in run.stdout.split()]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_processes_share_no_draw(tmp_path):
    draws = printed(tmp_path, FORK) + exact_normals(20)
    assert len(draws) == len({z >> 32 for z in draws}) == 5 * 41 + 20


def test_spawned_processes_share_no_draw(tmp_path):
    draws = printed(tmp_path, SPAWN) + bulk_normals(20)
    assert len(draws) == len({z >> 32 for z in draws}) == 5 * 41 + 20
