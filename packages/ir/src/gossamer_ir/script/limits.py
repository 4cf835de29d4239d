"""How large and how deep a script may be; checked before parsing and before printing.

Python's own parser refuses 200 nested brackets and 100 levels of indentation; every expression node
costs at most one bracket, every statement one level (an `init` one more).
"""

from __future__ import annotations

import ast
import warnings

from gossamer_ir.errors import ParseError, Place, VerifyError
from gossamer_ir.nodes import Module, Node
from gossamer_ir.script.syntax import below
from gossamer_ir.traversal.walk import LEAVES, children

MAX_CHARACTERS = 8_000_000
"""Characters of a script."""

MAX_DEPTH = 190
"""Nodes on a path from a module to a leaf."""

MAX_INDENT = 95
"""Levels of indentation of a printed module."""

_MAX_SYNTAX_DEPTH = MAX_DEPTH + 12
_SIMPLE = (ast.Assign, ast.Expr, ast.AnnAssign, ast.AugAssign, ast.expr)
_FLAT = (ast.Tuple, ast.List, ast.Slice, ast.Starred, ast.Attribute)


def parse_syntax(text: str) -> ast.Module:
    """Python's syntax tree of a text; `ParseError` where it is too large, too deep or no Python."""
    if len(text) > MAX_CHARACTERS:
        raise ParseError(
            "parse.size", f"The script has {len(text)} characters, more than {MAX_CHARACTERS}."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # Python's advice to who runs the text
            tree = ast.parse(text)
    except SyntaxError as error:
        raise _syntax_error(text, error) from None
    except ValueError as error:
        raise ParseError("parse.syntax", f"The script is no Python text: {error}.") from None
    except (RecursionError, MemoryError):
        raise _too_deep("parse.depth", "The script") from None
    _check_syntax_depth(tree)
    return tree


def check_parsed_depth(module: Module) -> None:
    """`ParseError` (`parse.depth`) where a module is nested deeper than can be printed."""
    if depth_of(module) > MAX_DEPTH:
        raise _too_deep("parse.depth", "The script")


def check_module_depth(module: Module) -> None:
    """`VerifyError` (`print.depth`) where a module is nested deeper than scripts may be."""
    if depth_of(module) > MAX_DEPTH:
        found = _too_deep("print.depth", "The module")
        raise VerifyError(found.code, found.diagnostics[0].message)


def depth_of(node: Node) -> int:
    """Nodes on the longest path from a node to a leaf, itself included."""
    deepest = 1
    stack = [(node, 1)]
    while stack:
        current, depth = stack.pop()
        below = children(current)
        if below and depth >= deepest:
            deepest = depth + 1
        stack += [(child, depth + 1) for child in below if type(child) not in LEAVES]
    return deepest


def indent_error(place: Place) -> VerifyError:
    """The error for statements nested deeper than text can be indented."""
    return VerifyError(
        "print.depth",
        f"The statements of the module are nested deeper than {MAX_INDENT} levels.",
        place=place,
    )


def _too_deep(code: str, what: str) -> ParseError:
    return ParseError(
        code,
        f"{what} is nested deeper than {MAX_DEPTH} levels.",
        hint="Bind inner expressions to variables.",
    )


def _check_syntax_depth(tree: ast.Module) -> None:
    stack: list[tuple[ast.AST, int]] = [(tree, 0)]
    while stack:
        current, depth = stack.pop()
        if depth > _MAX_SYNTAX_DEPTH:
            raise _too_deep("parse.depth", "The script")
        if isinstance(current, _SIMPLE) and depth + _characters(current) < _MAX_SYNTAX_DEPTH:
            continue
        is_level = isinstance(current, (ast.expr, ast.stmt)) and not isinstance(current, _FLAT)
        step = 1 if is_level else 0
        stack += [(child, depth + step) for child in below(current)]


def _characters(node: ast.stmt | ast.expr) -> int:
    """The length of a node's text, which is not nested deeper than that; one over lines is long."""
    if node.end_lineno != node.lineno or node.end_col_offset is None:
        return MAX_CHARACTERS
    return node.end_col_offset - node.col_offset


def _syntax_error(text: str, error: SyntaxError) -> ParseError:
    line = error.lineno or 1
    message = (error.msg or "invalid syntax").rstrip(".")
    if "too many" in message:
        return _too_deep("parse.depth", "The script")
    lines = text.splitlines()
    source = lines[line - 1] if 0 < line <= len(lines) else ""
    caret = " " * (max(error.offset or 1, 1) - 1) + "^"
    return ParseError(
        "parse.syntax",
        f"The script is no Python text: {message}.",
        text=f"line {line}:\n    {source}\n    {caret}",
    )
