"""mechanism.npz: the tables of a coupling mechanism as whole numbers, one for each group, and its places."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from jaxpriv.channels.table import IntegerTable
from jaxpriv.jobs.conceal_groups import GroupCounts


FORMAT, VERSION = "jaxpriv-coupling", 1


@dataclass(frozen=True)
class ConcealFile:
    """Tables (groups, n, n): row x, column z of a group's table is the weight of publishing z for x, out of 2^bits."""

    tables: tuple[IntegerTable, ...] = field(repr=False)
    groups: GroupCounts = field(repr=False)
    target: np.ndarray = field(repr=False)
    kind: str
    scale_m: float | None

    def write(self, path: Path) -> None:
        """Write the arrays, uncompressed; weights as int64, exactly."""
        latitude, longitude = self.groups.plane.to_degrees(np.asarray(self.groups.places.locations))
        with path.open("xb") as file, zipfile.ZipFile(file, "w") as archive:
            for name, value in (
                ("format", np.array(FORMAT)),
                ("format_version", np.array(VERSION)),
                ("weights", np.stack([table.weights for table in self.tables])),
                ("bits", np.array(self.tables[0].bits)),
                ("groups", np.array(self.groups.names)),
                ("counts", self.groups.counts),
                ("target", self.target),
                ("latitude", latitude),
                ("longitude", longitude),
                ("kind", np.array(self.kind)),
                ("scale", np.array(np.nan if self.scale_m is None else self.scale_m)),
            ):
                with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, np.asarray(value), allow_pickle=False)
