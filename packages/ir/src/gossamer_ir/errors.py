"""The exceptions of gossamer. A user error has a stable code, a one-sentence message, a place and a hint.

The base classes, and the errors that are not about programs and tensors, are in `gossamer_support.errors`.
Packages that use the language import all of them from here.
"""

from __future__ import annotations

from gossamer_support.errors import (
    ArgumentError,
    CodedError,
    Diagnostic,
    GossamerError,
    InternalError,
    Place,
    PluginError,
    UserError,
)

__all__ = [
    "ArgumentError",
    "CodedError",
    "Diagnostic",
    "FormatError",
    "GossamerError",
    "InternalError",
    "ParseError",
    "Place",
    "PluginError",
    "ScheduleError",
    "UnsupportedError",
    "UserError",
    "VerifyError",
]


class ParseError(UserError):
    """A script or an encoded module cannot be read."""


class VerifyError(UserError):
    """A module breaks a rule of its stage."""

    @classmethod
    def from_diagnostics(cls, diagnostics: tuple[Diagnostic, ...], text: str) -> VerifyError:
        """Return the error of a module with these diagnostics, at least one; `text` shows their places.

        >>> VerifyError.from_diagnostics((Diagnostic("verify.depth", "Too deep."),), "").code
        'verify.depth'
        """
        first = diagnostics[0]
        return cls(first.code, first.message, diagnostics=diagnostics, text=text)


class ScheduleError(UserError):
    """A precondition of a primitive does not hold, or cannot be proved."""


class FormatError(UserError):
    """Arrays do not form a tensor of the given format."""


class UnsupportedError(UserError):
    """A valid program uses a construct that is not implemented; the message names it."""
