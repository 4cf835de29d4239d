"""The public function that parses the text of an expression.

It is apart from those that parse modules, because schedules have texts of expressions: a first call imports
half as many modules of the parser.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from gossamer_ir.errors import ParseError
from gossamer_ir.nodes import Buffer, Expr, Var
from gossamer_ir.script.limits import parse_syntax
from gossamer_ir.script.parser.arguments.call_arguments import call_name
from gossamer_ir.script.parser.expressions.calls import CALL_PARSERS, METHOD_PARSERS
from gossamer_ir.script.parser.expressions.expression_parsers import expr
from gossamer_ir.script.parser.state.context import ParserContext
from gossamer_ir.script.source import Source
from gossamer_ir.script.syntax import syntax_nodes
from gossamer_support.typed_calls import typed

_BUFFER_AT = {"load": 0, "search": 1}


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
