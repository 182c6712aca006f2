"""What published formulas would say about a mechanism, where they say less than the truth."""

from __future__ import annotations

import math

import numpy as np

from jaxpriv.secrets.secret import Secret


_TOLD = 1e-3  # relative; smaller differences matter to nobody


def printed_losses(covariance: np.ndarray, secret: Secret, noise: np.ndarray, loss: float) -> list[tuple[str, float]]:
    """Formulas whose loss (inverse squared units) is below the certified `loss`, each with what it says.

    * 1/σ² + α* of Lemma 3.2 and Theorem 3.4 of Meehan and Chaudhuri (AISTATS 2021): valid only for noise of the secret
      that is white and independent of the rest.
    * 1/β with β = λ_min(H⁺ (C + G) H⁺ᵀ), the objective of their SDP_A, which never exceeds the loss.

    `noise` is the covariance G, (n, n).
    """
    inside = np.array(secret.indices)
    outside = np.setdiff1d(np.arange(len(covariance)), inside)
    own = covariance[np.ix_(inside, inside)]
    try:
        regression = np.linalg.solve(own, covariance[inside]).T
        residual = covariance - regression @ own @ regression.T
        direct = float(np.linalg.eigvalsh(np.linalg.inv(noise[np.ix_(inside, inside)]))[-1])
        inferential = 0.0
        if outside.size:
            rest = (residual + noise)[np.ix_(outside, outside)]
            gain = regression[outside].T @ np.linalg.solve(rest, regression[outside])
            inferential = float(np.linalg.eigvalsh((gain + gain.T) / 2)[-1])
        inverse = np.linalg.pinv(regression)
        surrogate = 1.0 / float(np.linalg.eigvalsh(inverse @ (residual + noise) @ inverse.T)[0])
    except np.linalg.LinAlgError:
        return []
    found = [("1/σ² + α*, printed for independent noise", direct + inferential), ("1/β of SDP_A", surrogate)]
    return [(name, value) for name, value in found if math.isfinite(value) and 0 < value < loss * (1 - _TOLD)]
