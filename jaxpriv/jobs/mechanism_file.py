"""mechanism.npz: the noise of each coordinate and the times it was designed for. It stays private."""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.jobs.reporting import AXES
from jaxpriv.mechanisms.gaussian import GaussianMechanism


FORMAT, VERSION = "jaxpriv-mechanism", 1
_ENTRIES = {
    "format", "format_version", "time_us", "grid_exponent", "resolution", "simulated",
}  # fmt: skip
_MAX_BYTES = 2 * 2**30


@dataclass(frozen=True)
class MechanismFile:
    """A mechanism for each axis (east and north, in metres), the instants (n,), and what the release used.

    `time_us` int64 in microseconds since 1970; `resolution_m` the declared resolution of the input. Nothing in it
    depends on the positions.
    """

    mechanisms: tuple[GaussianMechanism, ...] = field(repr=False)
    time_us: np.ndarray = field(repr=False)
    grid_exponent: int
    resolution_m: float
    simulated: bool
    axes: tuple[str, ...] = AXES

    def write(self, path: Path) -> None:
        """Write the file, readable by its owner only; the float64 arrays exactly."""
        arrays = {
            "format": FORMAT,
            "format_version": VERSION,
            "time_us": self.time_us,
            "grid_exponent": self.grid_exponent,
            "resolution": self.resolution_m,
            "simulated": self.simulated,
        }
        for axis, one in zip(self.axes, self.mechanisms, strict=True):
            arrays[f"factor_{axis}"] = np.asarray(one.factor, dtype=np.float64)
            arrays[f"floor_sd_{axis}"] = float(one.floor_sd)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            np.savez(file, **arrays)


def read_mechanism(path: Path, axes: tuple[str, ...] = AXES) -> MechanismFile:
    """Read a mechanism.npz for these axes.

    Raises `InputError`, which names the file, for anything that `write` does not write.
    """
    name = path.name
    try:
        with zipfile.ZipFile(path) as parts:
            if sum(part.file_size for part in parts.infolist()) > _MAX_BYTES:
                raise InputError(f"{name}: larger than any mechanism that can be designed")
        with np.load(path, allow_pickle=False) as stored:
            arrays = {key: stored[key] for key in stored.files}
    except InputError:
        raise
    except OSError as problem:
        raise InputError(f"{name}: cannot be read ({problem.strerror or 'unknown reason'})") from None
    except Exception:  # damaged archives raise whatever their decoder does
        raise InputError(f"{name}: not an array file as jaxpriv writes them") from None
    if str(arrays.get("format")) != FORMAT:
        raise InputError(f'{name}: its "format" is not "{FORMAT}"')
    if arrays.get("format_version", np.array("")).tolist() != VERSION:
        raise InputError(f"{name}: this jaxpriv reads version {VERSION} of the format; use the one that wrote it")
    if set(arrays) != _ENTRIES | {f"{part}_{axis}" for part in ("factor", "floor_sd") for axis in axes}:
        raise InputError(f"{name}: its arrays are not those of version {VERSION} of the format")
    times = arrays["time_us"]
    if times.dtype != np.int64 or times.ndim != 1 or times.size == 0 or np.any(np.diff(times) <= 0):
        raise InputError(f"{name}: the times are not an increasing list of whole microseconds")
    mechanisms = []
    for axis in axes:
        factor, floor = arrays[f"factor_{axis}"], arrays[f"floor_sd_{axis}"]
        if factor.dtype != np.float64 or factor.ndim != 2 or len(factor) != len(times):
            raise InputError(f"{name}: the factor {axis} is not an array with a row for each time")
        if floor.dtype != np.float64 or floor.ndim:
            raise InputError(f"{name}: the floor {axis} is not a number")
        mechanisms.append(GaussianMechanism(factor, float(floor)))  # refuses what is not finite
    exponent, resolution, simulated = (arrays[key] for key in ("grid_exponent", "resolution", "simulated"))
    if exponent.dtype.kind != "i" or exponent.ndim or simulated.dtype.kind != "b" or simulated.ndim:
        raise InputError(f"{name}: grid_exponent or simulated is not what version {VERSION} of the format says")
    if resolution.dtype != np.float64 or resolution.ndim or not 0 <= float(resolution) < np.inf:
        raise InputError(f"{name}: the resolution is not a finite distance")
    return MechanismFile(tuple(mechanisms), times, int(exponent), float(resolution), bool(simulated), axes)
