"""What checking a folder found, as JSON and as text."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from jaxpriv.report.layout import wrapped
from jaxpriv.report.rounding import finite_or_none, given, significant


FORMAT, VERSION = "jaxpriv-verification", 1
_WORDS = {True: "ok", False: "FAILED", None: "not checked"}


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: passed, failed, or (None) not possible with what is there."""

    name: str
    passed: bool | None
    detail: str


@dataclass(frozen=True)
class Verification:
    """All checks of one folder.

    `epsilon` is the upper value that was computed from the stored mechanism (nats, at `order`), None without one.
    """

    checks: tuple[Check, ...]
    simulated: bool
    epsilon: float | None = None
    order: float | None = None

    @property
    def verified(self) -> bool:
        """Whether no check failed; simulated output always fails one. What was not checked is not counted."""
        return all(check.passed is not False for check in self.checks)

    def to_json(self) -> str:
        """Write the result as JSON."""
        content = {
            "format": FORMAT,
            "format_version": VERSION,
            "verified": self.verified,
            "simulated": self.simulated,
            "epsilon": None if self.epsilon is None else finite_or_none(self.epsilon),
            "order": self.order,
            "checks": [asdict(check) for check in self.checks],
        }
        return json.dumps(content, indent=2, allow_nan=False)

    def text(self) -> str:
        """Write the result for a reader: one line a check, and what follows from them."""
        lines = [
            wrapped(f"{_WORDS[check.passed]:<12} {check.name}: {check.detail}", rest=" " * 13) for check in self.checks
        ]
        return "\n".join([*lines, "", wrapped(self._conclusion())]) + "\n"

    def _conclusion(self) -> str:
        if self.simulated:
            return "Not a release: this is simulated output, made from a seed, and not private."
        if not self.verified:
            return "Not verified: do not rely on what the report says, and do not share the folder."
        if self.epsilon is None or self.order is None:
            return (
                "The shared files agree with each other. Whether they keep a promise was not checked: that needs the "
                "private folder, with the mechanism and the report."
            )
        return (
            f"Verified: ε ≤ {significant(self.epsilon, 3, 'up')} nats at order {given(self.order)} for each secret "
            "under each prior that the report states, for this release by itself. Whether the priors are true cannot "
            "be checked."
        )
