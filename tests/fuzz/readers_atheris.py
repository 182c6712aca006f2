"""Coverage-guided fuzzing of the trace readers with atheris, which is no dependency: `pip install atheris` first.

    python tests/fuzz/readers_atheris.py [-max_total_time=60] [other options of libFuzzer] [FOLDER of inputs]

The first byte of an input chooses the format; the rest are the bytes of the file. What `samples.check` demands must
hold, and an input that takes longer than ten seconds counts as a hang.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris  # pyright: ignore[reportMissingImports]


sys.path.insert(0, str(Path(__file__).parent))
with atheris.instrument_imports(include=["jaxpriv.traces", "jaxpriv.jobs.inspect"]):
    from samples import check, samples

FORMATS = ("csv", "txt", "gpx", "plt", "geojson", "parquet", "csv.gz")


def one_input(folder: Path, data: bytes) -> None:
    """Read one input as a file."""
    if data:
        check(folder, f"a.{FORMATS[data[0] % len(FORMATS)]}", data[1:])


def main() -> None:
    """Write the samples as first inputs, and fuzz until the options say stop."""
    with tempfile.TemporaryDirectory() as made:
        corpus, folder = Path(made) / "corpus", Path(made) / "work"
        corpus.mkdir()
        folder.mkdir()
        for name, content in samples().items():
            kind = FORMATS.index(name.partition(".")[2])
            (corpus / name).write_bytes(bytes([kind]) + content)
        atheris.Setup([sys.argv[0], "-timeout=10", *sys.argv[1:], str(corpus)], lambda data: one_input(folder, data))
        atheris.Fuzz()


if __name__ == "__main__":
    main()
