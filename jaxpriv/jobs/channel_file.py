"""channel.npz: an obfuscation table as whole numbers, and the places it is about."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from jaxpriv.channels.table import IntegerTable


FORMAT, VERSION = "jaxpriv-channel", 1


@dataclass(frozen=True)
class ChannelFile:
    """The table that is drawn from, and its places.

    `table` row x, column z: weight of publishing place z for place x, out of 2^bits. `latitude`, `longitude` (n,) in
    degrees; `probabilities` (n,) the prior; nothing in it depends on anybody's whereabouts but the prior's.
    """

    table: IntegerTable = field(repr=False)
    latitude: np.ndarray = field(repr=False)
    longitude: np.ndarray = field(repr=False)
    probabilities: np.ndarray = field(repr=False)
    method: str

    def write(self, path: Path) -> None:
        """Write the arrays, uncompressed; weights as int64, exactly."""
        with path.open("xb") as file, zipfile.ZipFile(file, "w") as archive:
            for name, value in (
                ("format", np.array(FORMAT)),
                ("format_version", np.array(VERSION)),
                ("weights", self.table.weights),
                ("bits", np.array(self.table.bits)),
                ("latitude", self.latitude),
                ("longitude", self.longitude),
                ("probabilities", self.probabilities),
                ("method", np.array(self.method)),
            ):
                with archive.open(f"{name}.npy", "w") as entry:
                    np.lib.format.write_array(entry, np.asarray(value), allow_pickle=False)
