"""Reads one decorated function."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TypeAlias

from msgspec.structs import replace

from gossamer_ir.analysis.invariants import mutable_buffers
from gossamer_ir.nodes import Block, For, Function, InRange, Node, StageName, Stmt, While
from gossamer_ir.script.parser.declarations.parameters import parse_parameters
from gossamer_ir.script.parser.expressions.calls import CALL_PARSERS, METHOD_PARSERS
from gossamer_ir.script.parser.state.context import Captured, ParserContext
from gossamer_ir.script.parser.statements.statement_parsers import parse_stmt
from gossamer_ir.script.source import Source
from gossamer_ir.traversal.names import to_identifier
from gossamer_ir.traversal.walk import children

Origins: TypeAlias = dict[int, tuple[Node, ast.AST]]


def parse_function_def(
    source: Source, node: ast.FunctionDef, *, captured: Captured, origins: Origins
) -> tuple[Function, StageName]:
    """Parse a function and its stage; add the syntax nodes of its nodes to `origins`."""
    context, body = parse_parts(source, node, captured)
    parts = context.function
    if parts.map is not None:
        raise context.error("map", "Only a format description can have a map.", node)
    function = Function(
        to_identifier(node.name),
        tuple(parts.params),
        body,
        tuple(parts.axes),
        tuple(parts.buffers),
        tuple(parts.relations),
        tuple(parts.facts),
        tuple(parts.annotations),
        tuple(parts.reducers),
    )
    origins.update(context.origins)
    function = _without_hints(function, parts.hints)
    return function, parts.stage or _guessed_stage(function)


def _without_hints(function: Function, hints: Sequence[InRange]) -> Function:
    """Return the function without the hints about buffers that it writes, which could not be checked."""
    if not hints:
        return function
    written = mutable_buffers(function)
    idle = {id(fact) for fact in hints if fact.buffer in written}
    facts = tuple(fact for fact in function.facts if id(fact) not in idle)
    return replace(function, facts=facts) if idle else function


def parse_parts(
    source: Source, node: ast.FunctionDef, captured: Captured
) -> tuple[ParserContext, tuple[Stmt, ...]]:
    """Parse the declarations and the body of a function."""
    context = ParserContext(source, captured, CALL_PARSERS, METHOD_PARSERS)
    parse_parameters(context, node)
    context.scopes.append({})
    body: list[Stmt] = []
    for stmt in node.body:
        parse_stmt(context, stmt, body)
    return context, tuple(body)


# Other statements: nothing is concluded from them.
def _guessed_stage(function: Function) -> StageName:
    """Return the stage of a published script without a level.

    Programs with axes are at the position stage if they have loops, else at the coordinate stage.
    """
    has_loops = any(isinstance(stmt, For | While | Block) for stmt in children(function))
    if function.axes or not has_loops:
        return "position" if has_loops else "coordinate"
    return "loop"
