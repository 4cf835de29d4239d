"""Reads blocks: their iterators, predicate, regions."""

from __future__ import annotations

import ast
from typing import Literal

from gossamer_ir.nodes import Block, BlockIter, Expr, Range, Region, Var
from gossamer_ir.script.parser.arguments.call_arguments import bind, call_name, items
from gossamer_ir.script.parser.arguments.statics import required_text
from gossamer_ir.script.parser.expressions.expression_parsers import expr, index_expr
from gossamer_ir.script.parser.expressions.range_arguments import parse_range, parse_region
from gossamer_ir.script.parser.state.block_declarations import BlockDeclarations
from gossamer_ir.script.parser.state.context import ParserContext
from gossamer_ir.traversal.substitute import substitute
from gossamer_support.message_texts import amount

_KINDS: dict[str, Literal["S", "R"]] = {
    "axis.spatial": "S",
    "axis.reduce": "R",
    "axis.S": "S",
    "axis.R": "R",
}
"""The calls that define one iterator, with its kind."""

AXIS_CALLS = (*_KINDS, "axis.remap")
"""The calls that define iterators."""


def required_block_declarations(context: ParserContext, node: ast.AST) -> BlockDeclarations:
    """Return the declarations of the block whose body has this statement; raises `parse.outside_block` if
    none does."""
    if context.declarations is None or context.declarations.kind != "block":
        raise context.error("outside_block", "This is allowed only directly in a block.", node)
    return context.declarations


def parse_iters(context: ParserContext, target: ast.expr, call: ast.Call) -> None:
    """Parse `vi = T.axis.spatial(m, i)` or `vi, vj = T.axis.remap("SR", [i, j])`."""
    declarations = required_block_declarations(context, call)
    name = call_name(call) or ""
    targets = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    if name == "axis.remap":
        return _parse_remap(context, declarations, targets, call)
    if len(targets) != 1:
        raise context.error(
            "arguments", f"T.{name} defines one variable, not {len(targets)}.", target
        )
    arguments = bind(context, call, "domain value", required=2)
    value = index_expr(context, arguments["value"])
    domain = arguments["domain"]
    bounds = domain.elts if isinstance(domain, ast.Tuple) else [domain]
    _add(
        context,
        declarations,
        targets[0],
        (_KINDS[name], parse_range(context, bounds, domain), value),
    )
    return None


def parse_where(context: ParserContext, call: ast.Call) -> None:
    """Parse `T.where(predicate)`."""
    declarations = required_block_declarations(context, call)
    if declarations.predicate is not None:
        raise context.error("duplicate", "T.where is given twice.", call)
    declarations.predicate = expr(
        context, bind(context, call, "predicate", required=1)["predicate"], "bool"
    )


def parse_reads(context: ParserContext, call: ast.Call) -> None:
    """Parse `T.reads(A[i, 0:n], ...)`."""
    declarations = required_block_declarations(context, call)
    if declarations.reads is not None:
        raise context.error("duplicate", "T.reads is given twice.", call)
    declarations.reads = _regions(context, call)


def parse_writes(context: ParserContext, call: ast.Call) -> None:
    """Parse `T.writes(C[i, k])`."""
    declarations = required_block_declarations(context, call)
    if declarations.writes is not None:
        raise context.error("duplicate", "T.writes is given twice.", call)
    declarations.writes = _regions(context, call)


def to_block(name: str, declarations: BlockDeclarations, body: tuple[object, ...]) -> Block:
    """Return the block with these declarations and this body."""
    return Block(
        name,
        tuple(declarations.iters),
        body,  # type: ignore[arg-type]  # statements; typed loosely to keep imports one-way
        declarations.init or (),
        declarations.predicate,
        declarations.reads,
        declarations.writes,
        declarations.annotations or (),
    )


def _regions(context: ParserContext, call: ast.Call) -> tuple[Region, ...]:
    nodes = call.args
    if len(nodes) == 1 and isinstance(nodes[0], ast.List):
        nodes = nodes[0].elts
    return tuple([parse_region(context, node) for node in nodes])


def _parse_remap(
    context: ParserContext, declarations: BlockDeclarations, targets: list[ast.expr], call: ast.Call
) -> None:
    arguments = bind(context, call, "kinds bindings", required=2)
    kinds = required_text(context, arguments["kinds"], "kinds such as 'SR'")
    bindings = items(context, arguments["bindings"], "loop variables")
    if not len(kinds) == len(bindings) == len(targets) or set(kinds) - {"S", "R"}:
        message = f"Expected {amount(len(targets), 'letter')} S or R, one for each variable."
        raise context.error("remap", message, call)
    values = [_loop_var(context, node) for node in bindings]
    for target, kind, value, node in zip(targets, kinds, values, bindings, strict=True):
        domain = context.mark(remapped_domain(context.loops[value.name], declarations.iters), node)
        _add(
            context,
            declarations,
            target,
            ("S" if kind == "S" else "R", domain, context.mark(value, node)),
        )


def remapped_domain(loop: Range, iters: list[BlockIter]) -> Range:
    """Return a loop's range, with the variables of outer loops replaced by the iterators bound to them."""
    values: dict[str, Expr] = {
        iterator.value.name: Var(iterator.var, "int64")
        for iterator in iters
        if isinstance(iterator.value, Var)
    }
    result: Range = substitute(loop, values)
    return result


def _loop_var(context: ParserContext, node: ast.expr) -> Var:
    value = context.lookup(node.id) if isinstance(node, ast.Name) else None
    if not isinstance(value, Var) or value.name not in context.loops:
        loops = ", ".join(context.loops) or "none"
        hint = f"Loops here: {loops}."
        raise context.error(
            "remap", f"'{context.text_of(node)}' is not a loop variable.", node, hint=hint
        )
    return Var(value.name, value.dtype)


def _add(
    context: ParserContext,
    declarations: BlockDeclarations,
    target: ast.expr,
    iterator: tuple[Literal["S", "R"], Range, Expr],
) -> None:
    if not isinstance(target, ast.Name):
        raise context.error("target", "Expected a variable name.", target)
    kind, domain, value = iterator
    var = context.bind_var(target.id)
    declarations.iters.append(context.mark(BlockIter(var.name, kind, domain, value), target))
