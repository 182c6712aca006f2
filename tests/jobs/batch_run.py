"""Run a simulated batch that kills itself when its second part has been made; a script."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from pathlib import Path

from jaxpriv.jobs.batch import part as batch_part, run as batch


def main() -> None:
    spec = importlib.util.spec_from_file_location("batch_data", Path(__file__).with_name("batch_data.py"))
    assert spec is not None and spec.loader is not None
    data = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(data)
    original, made = batch_part.write_shared, []

    def write(path: Path, released: list) -> None:
        original(path, released)
        made.append(path)
        if len(made) == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    batch_part.write_shared = write
    batch.run_batch(Path(sys.argv[1]), Path(sys.argv[2]), data.request(7), part_traces=4)


if __name__ == "__main__":
    main()
