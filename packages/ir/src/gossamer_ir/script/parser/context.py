"""What the parser knows while it reads one function: names, source, captured values, loops."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

from gossamer_ir.errors import ParseError
from gossamer_ir.nodes import (
    Axis,
    Buffer,
    Expr,
    Node,
    Param,
    Range,
    Reducer,
    SparseBuffer,
    Var,
)  # fmt: skip
from gossamer_ir.script.parser.block_parts import BlockParts
from gossamer_ir.script.parser.function_parts import FunctionParts
from gossamer_ir.script.parser.layouts import AnyLayout
from gossamer_ir.script.source import Source
from gossamer_ir.traversal.names import Namer, to_identifier

Entity: TypeAlias = Var | Axis | SparseBuffer | Buffer | Param | Reducer
"""What a name stands for; a `Param` is a handle, scalar parameters are variables."""

Captured: TypeAlias = Mapping[str, object]
"""Names of the surrounding Python code; only numbers, bools and strings are ever used."""

N = TypeVar("N", bound=Node)


class Context:
    """Names in scope, what was read so far, and how to report an error at a syntax node.

    `layouts` are those of buffers whose elements are stored in another order, `declared` the dtypes that
    the text gives to sizes, which are int64.
    """

    def __init__(self, source: Source, captured: Captured, calls: Mapping[str, Handler]) -> None:
        self.source = source
        self.captured = captured
        self.calls = calls
        self.namer = Namer()
        self.labels = Namer()
        self.scopes: list[dict[str, Entity]] = [{}]
        self.function = FunctionParts()
        self.layouts: dict[str, AnyLayout] = {}
        self.declared: dict[str, str] = {}
        self.is_top = True
        self.parts: BlockParts | None = None
        self.loops: dict[str, Range] = {}
        self.origins: dict[int, tuple[Node, ast.AST]] = {}

    def lookup(self, name: str) -> Entity | None:
        """What a name stands for here, the innermost scope first."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def fresh(self, name: str) -> str:
        """A name as it stands in the module: an identifier, unique in the function."""
        return self.namer.fresh(to_identifier(name))

    def bind(self, name: str, entity: Entity) -> None:
        """Lets a name of the text stand for an entity, to the end of the scope."""
        self.scopes[-1][name] = entity

    def bind_var(self, name: str, dtype: str = "int64") -> Var:
        """Binds a new variable."""
        var = Var(self.fresh(name), dtype)
        self.bind(name, var)
        return var

    def mark(self, node: N, origin: ast.AST) -> N:
        """Remembers where a node was read; keeps it alive, so that its id stays its own."""
        self.origins.setdefault(id(node), (node, origin))
        return node

    def error(self, code: str, message: str, node: ast.AST, *, hint: str = "") -> ParseError:
        """A `ParseError` with the source line and carets under a syntax node."""
        carets = self.source.carets(self.source.span_of(node))
        return ParseError(f"parse.{code}", message, hint=hint, text=carets)

    def text_of(self, node: ast.AST) -> str:
        """The beginning of a syntax node's text, for a message."""
        span = self.source.span_of(node)
        line = self.source.line(span.line)
        end = span.end_column if span.end_line == span.line else len(line)
        text = line[span.column : end]
        return text if len(text) <= 40 else text[:37] + "..."

    def names(self, kinds: type | tuple[type, ...]) -> str:
        """The names in scope that stand for one of the kinds, for a hint."""
        found = [name for scope in self.scopes for name in scope if isinstance(scope[name], kinds)]
        return ", ".join(found) or "none"


Handler: TypeAlias = Callable[[Context, ast.Call, str | None], Expr]
"""Reads a call as an expression; the last argument is the dtype expected there, if any."""
