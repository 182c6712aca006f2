"""Two writers of one ledger in forked children, one of them killed; a script, so that no thread of JAX is running.

Arguments: a folder and the number of repetitions. In repetition i both children write to FOLDER/i.ledger: the same
requests when i is even, different ones when it is odd; the first is killed at a random time. What a child was told is
kept in FOLDER/i.CHILD: a line each time the ledger has said that a release is reserved, stored or published.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

from jaxpriv.jobs.ledger.account import Ledger, Person
from jaxpriv.jobs.ledger.joint import Joint, SecretTogether
from jaxpriv.jobs.ledger.records import LedgerRelease, LedgerSecret
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.traces.projection import LocalPlane


RELEASES = 3  # that each writer makes
PERSON = Person("p", LocalPlane(45.0, -30.0))
PRIOR = PriorChoice("matern32", 60.0, 300.0, 1.0)
NOISE = GaussianMechanism(np.ones((2, 1)), 1.0)


def write(path: Path, child: str, same: bool) -> None:
    log = os.open(path.with_suffix(f".{child}"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with Ledger(path) as book:
        for i in range(RELEASES):
            request = f"{'both' if same else child} {i}".encode()
            while True:
                found = book.find("p", b"content", request)
                if found is not None and found.state != "reserved":
                    break
                earlier = [one for one in book.releases("p") if one.request != request or one.state != "reserved"]
                secret = LedgerSecret("s", (0,), False, 1.0, 1.0)
                draw = f"{child} {i} {time.time_ns()}"
                release = LedgerRelease(
                    0, draw, "reserved", "", b"content", request, np.array([0, 10]), (NOISE, NOISE),
                    ((PRIOR,), (PRIOR,)), (secret,),
                )  # fmt: skip
                # Stands for the certificate: how many releases it was computed for.
                joint = Joint((SecretTogether("s", 0, 1.0, len(earlier) + 1.0),), {})
                number = book.reserve(PERSON, release, joint, earlier, None, "folder")
                if number is None:
                    continue
                os.write(log, f"reserved|{number}|{draw}\n".encode())
                if not book.store(draw, {"share/trace.csv": draw.encode() * 500, "share/release.json": b"{}"}):
                    continue
                os.write(log, f"stored|{number}|{draw}\n".encode())
                book.publish(draw)
                os.write(log, f"published|{number}|{draw}\n".encode())
                break


def fork(path: Path, child: str, same: bool) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        write(path, child, same)
    except BaseException as problem:
        print(f"{path.name} {child}: {problem!r}", file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


def main() -> None:
    folder, repetitions = Path(sys.argv[1]), int(sys.argv[2])
    generator, duration = random.Random(3), 0.1
    for i in range(repetitions):
        path = folder / f"{i}.ledger"
        start = time.perf_counter()
        first, second = (fork(path, child, i % 2 == 0) for child in ("first", "second"))
        time.sleep(generator.uniform(0, duration))
        os.kill(first, signal.SIGKILL)
        _, killed = os.waitpid(first, 0)
        _, other = os.waitpid(second, 0)
        # The times of the kills follow the length of a run.
        duration = 0.5 * duration + 0.5 * (time.perf_counter() - start)
        print("killed" if os.WIFSIGNALED(killed) else "done", os.WEXITSTATUS(other), flush=True)


if __name__ == "__main__":
    main()
