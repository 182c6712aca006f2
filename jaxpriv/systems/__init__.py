"""What an eavesdropper who knows a linear system learns from its noisy outputs, now and over time."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from jaxpriv.lazy import lazy_names as _lazy_names


if _TYPE_CHECKING:
    from jaxpriv.systems.bounds import (
        filter_covariance_bound as filter_covariance_bound,
        filter_logdet_bound as filter_logdet_bound,
        ratio_bound as ratio_bound,
    )
    from jaxpriv.systems.certified import SystemLeakage as SystemLeakage, certify_system as certify_system
    from jaxpriv.systems.kalman import (
        KalmanCovariances as KalmanCovariances,
        finite_horizon as finite_horizon,
        steady_state as steady_state,
    )
    from jaxpriv.systems.leakage import (
        information_rate as information_rate,
        single_output_information as single_output_information,
        state_information as state_information,
        state_leakage as state_leakage,
        trajectory_information as trajectory_information,
        trajectory_leakage as trajectory_leakage,
    )
    from jaxpriv.systems.matern import matern_system as matern_system
    from jaxpriv.systems.ranks import history_rank as history_rank
    from jaxpriv.systems.scalar_noise import (
        filter_noise as filter_noise,
        output_noise as output_noise,
        smoother_noise as smoother_noise,
    )


_HOME = {
    "certify_system": "jaxpriv.systems.certified",
    "filter_covariance_bound": "jaxpriv.systems.bounds",
    "filter_logdet_bound": "jaxpriv.systems.bounds",
    "filter_noise": "jaxpriv.systems.scalar_noise",
    "finite_horizon": "jaxpriv.systems.kalman",
    "history_rank": "jaxpriv.systems.ranks",
    "information_rate": "jaxpriv.systems.leakage",
    "KalmanCovariances": "jaxpriv.systems.kalman",
    "matern_system": "jaxpriv.systems.matern",
    "output_noise": "jaxpriv.systems.scalar_noise",
    "ratio_bound": "jaxpriv.systems.bounds",
    "single_output_information": "jaxpriv.systems.leakage",
    "smoother_noise": "jaxpriv.systems.scalar_noise",
    "state_information": "jaxpriv.systems.leakage",
    "state_leakage": "jaxpriv.systems.leakage",
    "steady_state": "jaxpriv.systems.kalman",
    "SystemLeakage": "jaxpriv.systems.certified",
    "trajectory_information": "jaxpriv.systems.leakage",
    "trajectory_leakage": "jaxpriv.systems.leakage",
}

__getattr__, __dir__ = _lazy_names("jaxpriv.systems", _HOME)
