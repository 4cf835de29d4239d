"""The error of a decomposition."""

from __future__ import annotations


class DecompositionError(Exception):
    """A program that cannot be decomposed. `reason` is the last part of an error code."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
