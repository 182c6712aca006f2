"""Numbers of every kind as JSON's own."""

from __future__ import annotations

from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """JSON's own types: no arrays or NumPy scalars, and infinities as words."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(one) for one in value]
    if isinstance(value, (bool, str, int)) or value is None:
        return value
    if isinstance(value, np.integer):
        return int(value)
    number = float(value)
    return number if np.isfinite(number) else ("nan" if np.isnan(number) else "infinite")
