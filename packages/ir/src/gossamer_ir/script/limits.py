"""Limits on the size and depth of scripts, checked before parsing and before printing.

Python's parser refuses 200 nested brackets and 100 levels of indentation. An expression node needs at most
one bracket, a statement one level (an `init` one more), so that a module within these limits can be
printed and parsed again.
"""

from __future__ import annotations

import ast
import warnings

from gossamer_ir.core.limits import MAX_DEPTH
from gossamer_ir.errors import ParseError, Place, VerifyError
from gossamer_ir.nodes import Module, Node
from gossamer_ir.script.syntax import child_nodes
from gossamer_ir.traversal.fields import LEAVES
from gossamer_ir.traversal.walk import children

MAX_CHARACTERS = 8_000_000
"""Maximum number of characters of a script."""

MAX_INDENT = 95
"""Maximum level of indentation of a printed module."""

# Python's tree of a text is deeper than ours: it has nodes for the module, the function, `with`, and calls.
_MAX_SYNTAX_DEPTH = MAX_DEPTH + 12
_SIMPLE = (ast.Assign, ast.Expr, ast.AnnAssign, ast.AugAssign, ast.expr)
_FLAT = (ast.Tuple, ast.List, ast.Slice, ast.Starred, ast.Attribute)


def parse_syntax(text: str) -> ast.Module:
    """Return Python's syntax tree of a text; raises `ParseError` if it is too large, too deep or not
    Python."""
    if len(text) > MAX_CHARACTERS:
        raise ParseError(
            "parse.size", f"The script has {len(text)} characters, more than {MAX_CHARACTERS}."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # these concern running the text
            tree = ast.parse(text)
    except SyntaxError as error:
        raise _syntax_error(text, error) from None
    except ValueError as error:
        raise ParseError("parse.syntax", f"The script is not valid Python: {error}.") from None
    except (RecursionError, MemoryError):
        raise _depth_error("parse.depth", "The script") from None
    _require_syntax_depth(tree)
    return tree


def require_parsed_depth(module: Module) -> None:
    """Raise `ParseError` (`parse.depth`) if a module is nested too deep to be printed."""
    if depth_of(module) > MAX_DEPTH:
        raise _depth_error("parse.depth", "The script")


def require_module_depth(module: Module) -> None:
    """Raise `VerifyError` (`print.depth`) if a module is nested too deep to be printed."""
    if depth_of(module) > MAX_DEPTH:
        error = _depth_error("print.depth", "The module")
        raise VerifyError(error.code, error.diagnostics[0].message)


def depth_of(node: Node) -> int:
    """Return the number of nodes on the longest path from a node to a leaf, both included."""
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
    """Return the error for statements nested deeper than `MAX_INDENT`."""
    return VerifyError(
        "print.depth",
        f"The statements of the module are nested deeper than {MAX_INDENT} levels.",
        place=place,
    )


def _depth_error(code: str, what: str) -> ParseError:
    return ParseError(
        code,
        f"{what} is nested deeper than {MAX_DEPTH} levels.",
        hint="Bind inner expressions to variables.",
    )


def _require_syntax_depth(tree: ast.Module) -> None:
    stack: list[tuple[ast.AST, int]] = [(tree, 0)]
    while stack:
        current, depth = stack.pop()
        if depth > _MAX_SYNTAX_DEPTH:
            raise _depth_error("parse.depth", "The script")
        if isinstance(current, _SIMPLE) and depth + _characters(current) < _MAX_SYNTAX_DEPTH:
            continue
        is_level = isinstance(current, (ast.expr, ast.stmt)) and not isinstance(current, _FLAT)
        step = 1 if is_level else 0
        stack += [(child, depth + step) for child in child_nodes(current)]


def _characters(node: ast.stmt | ast.expr) -> int:
    """Return an upper bound of the depth of a node: the length of its text, if that is on one line."""
    if node.end_lineno != node.lineno or node.end_col_offset is None:
        return MAX_CHARACTERS
    return node.end_col_offset - node.col_offset


def _syntax_error(text: str, error: SyntaxError) -> ParseError:
    line = error.lineno or 1
    message = (error.msg or "invalid syntax").rstrip(".")
    if "too many" in message:
        return _depth_error("parse.depth", "The script")
    lines = text.splitlines()
    source = lines[line - 1] if 0 < line <= len(lines) else ""
    caret = " " * (max(error.offset or 1, 1) - 1) + "^"
    return ParseError(
        "parse.syntax",
        f"The script is not valid Python: {message}.",
        text=f"line {line}:\n    {source}\n    {caret}",
    )
