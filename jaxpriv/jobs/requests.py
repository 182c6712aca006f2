"""What a user says about secrets and priors, before the trace is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.prior_sources import PriorSource, WhichSet, find_priors
from jaxpriv.jobs.secret_choice import Timed
from jaxpriv.jobs.secret_sources import ChosenSecrets, choose_secrets
from jaxpriv.jobs.target import Target
from jaxpriv.traces.instants import format_instant
from jaxpriv.traces.trace import Trace


@dataclass(frozen=True)
class SecretRequest:
    """Which secrets: the arguments of `choose_secrets`, distances in metres."""

    words: tuple[str, ...] = ()
    match_m: float | None = None
    together: bool = False
    every: bool = False
    hide_ends_m: float | None = None

    @classmethod
    def at(cls, times_us: Sequence[int]) -> SecretRequest:
        """The places at instants in microseconds since 1970 (UTC)."""
        return cls(tuple(format_instant(us) for us in times_us))

    def on(self, trace: Timed) -> ChosenSecrets:
        """Find them on a trace or a series. Raises `InputError` as `choose_secrets` does."""
        return choose_secrets(
            trace,
            self.words,
            match_m=self.match_m,
            together=self.together,
            every=self.every,
            hide_ends_m=self.hide_ends_m,
        )


@dataclass(frozen=True)
class PriorRequest:
    """Which priors: the arguments of `find_priors`. The default is the default set, fitted to the trace itself."""

    given: PriorChoice | None = None
    file: Path | None = None
    which: WhichSet | None = None
    kernels: tuple[str, ...] = ()
    sd_m: float | None = None

    def on(
        self, trace: Trace, metres: np.ndarray, target: Target, progress: Callable[[str], None] = lambda step: None
    ) -> PriorSource:
        """Find them for a trace with cleaned positions (n, 2) in metres. Raises `InputError` as `find_priors` does."""
        return find_priors(
            trace.seconds,
            metres,
            given=self.given,
            file=self.file,
            which=self.which,
            kernels=self.kernels,
            sd_m=self.sd_m,
            resolution_m=target.resolution_m,
            step_m=trace.step_m,
            progress=progress,
        )
