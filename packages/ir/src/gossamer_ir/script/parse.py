"""The public functions that parse script text: modules, decorated functions, expressions."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gossamer_ir.errors import ParseError
from gossamer_ir.nodes import Buffer, Expr, Module, Var
from gossamer_ir.script.limits import parse_syntax
from gossamer_ir.script.parser.arguments.call_arguments import call_name
from gossamer_ir.script.parser.expressions.calls import CALL_PARSERS, METHOD_PARSERS
from gossamer_ir.script.parser.expressions.expression_parsers import expr
from gossamer_ir.script.parser.modules import ParsedModule, parse_text
from gossamer_ir.script.parser.state.context import ParserContext
from gossamer_ir.script.source import Source
from gossamer_ir.script.syntax import syntax_nodes
from gossamer_ir.support.typed_calls import typed


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


@typed
def parse_expr(text: str, dtypes: Mapping[str, str]) -> Expr:
    """Return the expression in a text; `dtypes` has the dtypes of its variables and buffers by name.

    >>> parse_expr("i * 4 + 1", {"i": "int64"}).op
    'add'
    """
    tree = parse_syntax(f"({text}\n)")
    context = ParserContext(Source(f"({text}\n)"), {}, CALL_PARSERS, METHOD_PARSERS)
    subscripted = _buffer_names(tree)
    for name, dtype in dtypes.items():
        is_buffer = name in subscripted
        context.bind(name, Buffer(name, (), dtype) if is_buffer else Var(name, dtype))
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.Expr):
        raise ParseError("parse.expression", f"'{text}' is not an expression.")
    return expr(context, tree.body[0].value)


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


_BUFFER_AT = {"load": 0, "search": 1}


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


def _buffer_names(tree: ast.AST) -> frozenset[str]:
    names: set[str] = set()
    for node in syntax_nodes(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            names.add(node.value.id)
        if isinstance(node, ast.Call) and call_name(node) in _BUFFER_AT:
            number = _BUFFER_AT[call_name(node) or ""]
            items = node.args[number : number + 1]
            names.update(item.id for item in items if isinstance(item, ast.Name))
    return frozenset(names)
