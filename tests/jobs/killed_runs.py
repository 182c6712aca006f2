"""Run `protect_file` in forked children that are killed; a script, so that no thread of JAX is running when it forks.

What is released is drawn once, before: the children only read, record and write, which is where they are killed.

Arguments: a folder with in.csv and noise.pickle (the designed noise), "steps" or the number of random kills, and
"force" when each child shall replace a folder. Prints one line a child: its number and how it ended.
"""

from __future__ import annotations

import os
import pickle
import random
import shutil
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

from jaxpriv.jobs import protect as job
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.protect import protect_file
from jaxpriv.jobs.target import Target
from jaxpriv.traces.files import read_trace


EVENTS = ("open", "os.", "shutil.", "tempfile.")
PRIOR, TARGET = PriorChoice("matern32", 60.0, 300.0, 1.0), Target(200.0, 1.0)


def run(folder: Path, out: Path, force: bool) -> None:
    trace, secret = folder / "in.csv", int((folder / "secret").read_text())
    protect_file(trace, out, [secret], TARGET, PRIOR, force=force, again=True)


def child(folder: Path, out: Path, force: bool, step: int | None) -> int:
    """Fork a run; it kills itself before its call number `step` to the file system in `folder`, if given."""
    pid = os.fork()
    if pid:
        return pid
    # Its own record of releases: the number of steps does not grow with earlier runs.
    os.environ["XDG_STATE_HOME"] = str(out.with_name(f"{out.name}-state"))
    if step is not None:
        left = step

        def count(event: str, arguments: tuple) -> None:
            nonlocal left
            if event.startswith(EVENTS) and any(str(folder) in str(argument) for argument in arguments):
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1

        sys.addaudithook(count)
    try:
        run(folder, out, force)
    except BaseException:
        os._exit(1)
    os._exit(0)


def main() -> None:
    folder, kills, force = Path(sys.argv[1]), sys.argv[2], "force" in sys.argv
    noise = pickle.loads((folder / "noise.pickle").read_bytes())
    job.design_noise = lambda *arguments: noise
    run(folder, folder / "warm", False)
    secret = int((folder / "secret").read_text())
    drawn = job.protect(read_trace(folder / "in.csv"), [secret], TARGET, PRIOR)
    job.protect = lambda *arguments, releases, **options: replace(
        drawn, report=replace(drawn.report, releases=releases)
    )
    start = time.perf_counter()
    run(folder, folder / "again", False)
    duration = time.perf_counter() - start
    generator = random.Random(5)
    number = 0
    while True:
        out = folder / f"out{number}"
        if force:
            shutil.copytree(folder / "warm", out)
        pid = child(folder, out, force, number if kills == "steps" else None)
        if kills != "steps":
            time.sleep(generator.uniform(0, 2 * duration))
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        ended = "killed" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"
        # However busy the machine is, about half of the runs get as far as their folder.
        duration *= 0.8 if out.exists() else 1.25
        print(number, ended, flush=True)
        number += 1
        if number > 500 or (kills == "steps" and ended != "killed") or (kills != "steps" and number == int(kills)):
            return


if __name__ == "__main__":
    main()
