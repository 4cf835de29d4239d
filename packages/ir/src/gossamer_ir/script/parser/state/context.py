"""The state of the parser of one function: names, source, captured values, loops."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

from gossamer_ir.errors import ParseError
from gossamer_ir.nodes import Axis, Buffer, Expr, Node, Param, Range, Reducer, SparseBuffer, Var
from gossamer_ir.script.parser.state.block_declarations import BlockDeclarations
from gossamer_ir.script.parser.state.function_declarations import FunctionDeclarations
from gossamer_ir.script.parser.state.layouts import AnyLayout
from gossamer_ir.script.source import Source
from gossamer_ir.traversal.names import Namer, to_identifier

Entity: TypeAlias = Var | Axis | SparseBuffer | Buffer | Param | Reducer
"""The entities that a name may refer to. A `Param` is a handle; scalar parameters are variables."""

Captured: TypeAlias = Mapping[str, object]
"""Names of the enclosing Python code, of which only numbers, bools and strings are used."""

N = TypeVar("N", bound=Node)


class ParserContext:
    """The names in scope and the parts of the function parsed so far; also makes errors at syntax nodes.

    `layouts` are the layouts of buffers with strides or an offset. `declared` are the dtypes that the text
    gives to scalar parameters, of which those used as sizes are int64 in the module.
    """

    def __init__(
        self,
        source: Source,
        captured: Captured,
        calls: Mapping[str, CallParser],
        methods: Mapping[str, MethodParser],
    ) -> None:
        self.source = source
        self.captured = captured
        self.calls = calls
        self.methods = methods
        self.namer = Namer()
        self.labels = Namer()
        self.scopes: list[dict[str, Entity]] = [{}]
        self.function = FunctionDeclarations()
        self.layouts: dict[str, AnyLayout] = {}
        self.declared: dict[str, str] = {}
        self.is_top = True
        self.declarations: BlockDeclarations | None = None
        self.loops: dict[str, Range] = {}
        self.origins: dict[int, tuple[Node, ast.AST]] = {}

    def lookup(self, name: str) -> Entity | None:
        """Return the object of a name in the innermost scope that has it; None if it is not defined."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def fresh(self, name: str) -> str:
        """Return the name for the module: an identifier, unique in the function."""
        return self.namer.fresh(to_identifier(name))

    def bind(self, name: str, entity: Entity) -> None:
        """Bind a name of the text to an entity, to the end of the scope."""
        self.scopes[-1][name] = entity

    def bind_var(self, name: str, dtype: str = "int64") -> Var:
        """Bind a name of the text to a new variable."""
        var = Var(self.fresh(name), dtype)
        self.bind(name, var)
        return var

    def mark(self, node: N, origin: ast.AST) -> N:
        """Record the syntax node that a node was parsed from. Keeps the node alive: `origins` is keyed by its
        id, which Python could otherwise reuse."""
        self.origins.setdefault(id(node), (node, origin))
        return node

    def error(self, code: str, message: str, node: ast.AST, *, hint: str = "") -> ParseError:
        """Return a `ParseError` with the source line and carets under a syntax node."""
        carets = self.source.carets(self.source.span_of(node))
        return ParseError(f"parse.{code}", message, hint=hint, text=carets)

    def require_top(self, name: str, call: ast.Call) -> None:
        """Refuse a call of `T.<name>` in the body of a statement (`parse.nested`)."""
        if not self.is_top:
            raise self.error(
                "nested", f"T.{name} is allowed only at the top level of a function.", call
            )

    def text_of(self, node: ast.AST) -> str:
        """Return the first 40 characters of a syntax node's text, for a message."""
        span = self.source.span_of(node)
        line = self.source.line_text(span.line)
        end = span.end_column if span.end_line == span.line else len(line)
        text = line[span.column : end]
        return text if len(text) <= 40 else text[:37] + "..."

    def names(self, kinds: type | tuple[type, ...]) -> list[str]:
        """Return the names in scope that refer to entities of these types."""
        return [name for scope in self.scopes for name in scope if isinstance(scope[name], kinds)]

    def listed_names(self, kinds: type | tuple[type, ...]) -> str:
        """Return `names` as a text, for a hint."""
        return ", ".join(self.names(kinds)) or "none"


CallParser: TypeAlias = Callable[[ParserContext, ast.Call, str | None], Expr]
"""Reads a call as an expression; the last argument is the dtype that its context expects, if any."""
MethodParser: TypeAlias = Callable[[ParserContext, ast.expr, ast.Call, str | None], Expr]
"""The same for a method; the second argument is the object."""
