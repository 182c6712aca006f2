"""The two LAPACK routines whose results are only proposals: a Cholesky factor and the inverse of a triangle."""

from __future__ import annotations

import numpy as np
from scipy.linalg import get_lapack_funcs


potrf, trtri = get_lapack_funcs(("potrf", "trtri"), dtype=np.float64)
