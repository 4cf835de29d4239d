"""The public functions that parse script text: modules and decorated functions."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gossamer_ir.errors import ParseError
from gossamer_ir.nodes import Module
from gossamer_ir.script.parser.modules import ParsedModule, parse_text
from gossamer_ir.script.source import Source
from gossamer_support.typed_calls import typed


@typed
def parse_module(text: str) -> Module:
    """Return the module in a script.

    The text has functions decorated with `@T.prim_func`, and may have imports and constants. It is parsed,
    never run. Raises `ParseError` (codes `parse.*`) with the line and carets.

    >>> parse_module('''
    ... @T.prim_func
    ... def fill(x: T.handle, n: T.int64) -> None:
    ...     X = T.match_buffer(x, (n,), "float32")
    ...     for i in T.serial(n):
    ...         X[i] = 1.0
    ... ''').stage
    'loop'
    """
    return parse_text(Source(text), captured={}).module


def parse_function(function: Callable[..., Any] | str) -> Module:
    """Return the module of one function: a Python function, or text with its decorator.

    The function may use numbers and strings of the enclosing scopes. Raises `ParseError`, with the code
    `parse.no_source` if Python has no source of the function, as for code made by `exec`.

    >>> text = '''
    ... @T.prim_func
    ... def fill(x: T.handle) -> None:
    ...     X = T.match_buffer(x, (8,), "float32")
    ...     for i in T.serial(8):
    ...         X[i] = 1.0
    ... '''
    >>> parse_function(text).entry
    'fill'
    """
    return parse_source(function).module


def parse_source(function: Callable[..., Any] | str) -> ParsedModule:
    """Return the result of `parse_function` with its source and the positions of its nodes in it."""
    if isinstance(function, str):
        return parse_text(Source(function), captured={})
    return parse_text(source_of(function), captured=CapturedNames(function), needs_decorator=False)


def source_of(function: Callable[..., Any]) -> Source:
    """Return the source text of a Python function, without common indentation."""
    try:
        lines, first = inspect.getsourcelines(function)
        name = inspect.getsourcefile(function) or ""
    except (OSError, TypeError):
        raise ParseError(
            "parse.no_source",
            f"The source of {function!r} is not available.",
            hint="Pass the text to parse_module instead.",
        ) from None
    return Source(textwrap.dedent("".join(lines)), name=name, first_line=max(first, 1))


class CapturedNames(Mapping[str, object]):
    """The nonlocal and global names of a function; globals are looked up on each access."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._globals: Mapping[str, object] = getattr(function, "__globals__", {})
        self._nonlocals: dict[str, object] = {}
        code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
        for name, cell in zip(code.co_freevars if code else (), cells or (), strict=True):
            try:
                self._nonlocals[name] = cell.cell_contents
            except ValueError:
                continue

    def __getitem__(self, name: str) -> object:
        return self._nonlocals[name] if name in self._nonlocals else self._globals[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._globals, **self._nonlocals})

    def __len__(self) -> int:
        return len({**self._globals, **self._nonlocals})
