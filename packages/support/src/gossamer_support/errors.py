"""The base classes of exceptions. Those with a code also have a message, a place and a hint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

Place: TypeAlias = tuple[str | int, ...]
"""A path into a module: field names and tuple indices, such as ("functions", 0, "body", 2, "value")."""


class Diagnostic(msgspec.Struct, frozen=True):
    """One finding: a stable `code`, a one-sentence `message`, a `place` in the module and a `hint`."""

    code: str
    message: str
    place: Place = ()
    hint: str = ""


class GossamerError(Exception):
    """The base class of every exception that gossamer raises deliberately."""


class CodedError(GossamerError):
    """An error with a stable code; `diagnostics` has one entry per finding, `code` is that of the first."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str = "",
        place: Place = (),
        diagnostics: Sequence[Diagnostic] = (),
        text: str = "",
    ) -> None:
        first = Diagnostic(code=code, message=message, place=place, hint=hint)
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics) or (first,)
        self.code = self.diagnostics[0].code
        self._text: str | Callable[[], str] = text
        super().__init__(self.render())

    @property
    def text(self) -> str:
        """The source, or the printed module, with carets; empty if there is none."""
        if callable(self._text):
            self._text = self._text()
        return self._text

    def with_text(self, text: Callable[[], str]) -> None:
        """Attach a source text, unless the error has one. `text` is called when the error is shown: printing
        a module takes long, and most errors that are caught are never shown."""
        self._text = self._text or text

    def __str__(self) -> str:
        return self.render()

    def __reduce__(self) -> tuple[Callable[..., CodedError], tuple[object, ...]]:
        """Pickle the rendered text, since a callable that prints the module may not be picklable."""
        return _unpickle_error, (type(self), self.diagnostics, self.text)

    def render(self) -> str:
        """Return the message, hint and code of every diagnostic, and the text with carets."""
        lines = []
        for diagnostic in self.diagnostics:
            hint = f" {diagnostic.hint}" if diagnostic.hint else ""
            lines.append(f"{diagnostic.message}{hint} [{diagnostic.code}]")
        if self.text:
            lines.append(self.text)
        return "\n".join(lines)


class UserError(CodedError):
    """An error in the input of a user."""


class ArgumentError(UserError):
    """An argument of a public function has a wrong type, shape or value."""


class PluginError(CodedError):
    """A plugin is broken or missing, or lacks a capability that was requested."""


class InternalError(GossamerError):
    """A bug in gossamer."""


def _unpickle_error(
    kind: type[CodedError], diagnostics: tuple[Diagnostic, ...], text: str
) -> CodedError:
    """Reconstruct an error that was pickled."""
    first = diagnostics[0]
    return kind(first.code, first.message, diagnostics=diagnostics, text=text)
