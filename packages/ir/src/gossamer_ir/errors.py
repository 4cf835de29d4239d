"""The errors of gossamer: a user error has a stable code, one sentence, a place and a hint."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

Place = tuple[str | int, ...]
"""A path into a module: field names and tuple indices, such as ("functions", 0, "body", 2, "value")."""


class Diagnostic(msgspec.Struct, frozen=True):
    """One finding: `code` is stable, `message` one sentence, `place` a path into the module."""

    code: str
    message: str
    place: Place = ()
    hint: str = ""


class GossamerError(Exception):
    """The root of every error that gossamer raises on purpose."""


class CodedError(GossamerError):
    """An error with a stable code; `diagnostics` says what, where, and what to do."""

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
        """The source (or the printed module) with carets, where there is one."""
        if callable(self._text):
            self._text = self._text()
        return self._text

    def with_text(self, text: Callable[[], str]) -> None:
        """Says how the text in which the error was found is made, which happens when somebody looks at
        the error, to one that has none."""
        self._text = self._text or text

    def __str__(self) -> str:
        return self.render()

    def __reduce__(self) -> tuple[Callable[..., CodedError], tuple[object, ...]]:
        """Another process gets the whole error, with its text."""
        return _again, (type(self), self.diagnostics, self.text)

    def render(self) -> str:
        """The message of every diagnostic, its hint, and the text with carets."""
        lines = []
        for found in self.diagnostics:
            hint = f" {found.hint}" if found.hint else ""
            lines.append(f"{found.message}{hint} [{found.code}]")
        if self.text:
            lines.append(self.text)
        return "\n".join(lines)


class UserError(CodedError):
    """Something the user passed is wrong."""


class ParseError(UserError):
    """A script or an encoded module cannot be read."""


class VerifyError(UserError):
    """A module breaks a rule of its stage."""


class ScheduleError(UserError):
    """A primitive's precondition does not hold, or is not proved."""


class FormatError(UserError):
    """Arrays do not make a tensor of the format."""


class ArgumentError(UserError):
    """An argument of a public function has a wrong type, shape or value."""


class UnsupportedError(UserError):
    """The program is in the language, and not lowered yet; the message names the construct."""


class PluginError(CodedError):
    """A plugin is broken, missing, or was asked for what it did not declare."""


class InternalError(GossamerError):
    """A bug in gossamer."""


def _again(kind: type[CodedError], diagnostics: tuple[Diagnostic, ...], text: str) -> CodedError:
    """The error that another process has raised."""
    first = diagnostics[0]
    return kind(first.code, first.message, diagnostics=diagnostics, text=text)
