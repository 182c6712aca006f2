"""What jaxpriv raises: one base class, and one class for each thing a caller can do about it."""

from __future__ import annotations


class JaxprivError(Exception):
    """Base class of every error that jaxpriv raises on purpose."""


class InputError(JaxprivError, ValueError):
    """An argument or a file is wrong; the message says what, where, and what to do. Nothing was computed."""


class InfeasibleError(JaxprivError, ValueError):
    """No mechanism meets what was asked. `smallest_feasible` is the smallest value that can be met, where known."""

    def __init__(self, message: str, smallest_feasible: float | None = None):
        super().__init__(message)
        self.smallest_feasible = smallest_feasible


class CertificateError(JaxprivError, RuntimeError):
    """A mechanism was computed, but the claim about it could not be verified, so nothing is claimed."""
