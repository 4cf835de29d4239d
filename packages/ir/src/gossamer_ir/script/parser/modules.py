"""Reads a module: one decorated function, or several with the entry marked."""

from __future__ import annotations

import ast
from collections import ChainMap
from collections.abc import MutableMapping, Sequence
from typing import cast

import msgspec

from gossamer_ir.errors import ParseError
from gossamer_ir.nodes import Function, Module, StageName
from gossamer_ir.script.limits import parse_syntax, require_parsed_depth
from gossamer_ir.script.parser.arguments.call_arguments import dotted_name
from gossamer_ir.script.parser.arguments.statics import required_bool, static_text, static_value
from gossamer_ir.script.parser.functions import Origins, parse_function_def
from gossamer_ir.script.parser.state.context import Captured, ParserContext
from gossamer_ir.script.source import Source


class ParsedModule(msgspec.Struct, frozen=True):
    """A module, its source, and the syntax node of each of its nodes, by identity."""

    module: Module
    source: Source
    origins: Origins


def parse_text(source: Source, *, captured: Captured, needs_decorator: bool = True) -> ParsedModule:
    """Parse a module; errors are `ParseError` with the source line and carets."""
    tree = parse_syntax(source.text)
    nodes, constants = top_level(source, tree, captured)
    for node in nodes if needs_decorator else ():
        _require_decorator(source, node)
    if not nodes:
        raise ParseError(
            "parse.empty", "The script has no function.", hint="Define one under @T.prim_func."
        )
    origins: Origins = {}
    functions: list[Function] = []
    stages: list[StageName] = []
    for node in nodes:
        function, stage = parse_function_def(source, node, captured=constants, origins=origins)
        if stages and stage != stages[0]:
            message = (
                f"'{function.name}' has the stage '{stage}', but the module has '{stages[0]}'."
            )
            raise _error_at(source, "stage", message, node)
        if any(function.name == other.name for other in functions):
            raise _error_at(
                source, "duplicate", f"There are two functions '{function.name}'.", node
            )
        functions.append(function)
        stages.append(stage)
    entry = functions[_entry(source, nodes)].name
    module = Module(stages[0], tuple(functions), entry)
    require_parsed_depth(module)
    return ParsedModule(module, source, origins)


def top_level(
    source: Source, tree: ast.Module, captured: Captured
) -> tuple[list[ast.FunctionDef], Captured]:
    """Return the functions of a text, and the captured values together with the text's own constants."""
    constants = ChainMap[str, object]({}, cast(MutableMapping[str, object], captured))
    context = ParserContext(source, constants, {}, {})
    definitions = []
    for node in tree.body:
        match node:
            case ast.FunctionDef():
                definitions.append(node)
            case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
                continue
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                constants[name] = _constant(context, value)
            case _:
                message = "Expected only functions, imports and constants at the top level."
                raise context.error("top_level", message, node)
    return definitions, constants


def _constant(context: ParserContext, node: ast.expr) -> object:
    value = static_value(context, node)
    text = static_text(context, node) if value is None else value
    if text is None:
        raise context.error("top_level", "Expected a number or a string.", node)
    return text


def decorator_name(node: ast.FunctionDef) -> str | None:
    """Return `prim_func` or `format`; None if there is no such decorator."""
    for item in node.decorator_list:
        name = dotted_name(item.func if isinstance(item, ast.Call) else item)
        if name in ("prim_func", "format"):
            return name
    return None


def _require_decorator(source: Source, node: ast.FunctionDef) -> None:
    if decorator_name(node) is None:
        hint = "Write @T.prim_func above it."
        raise _error_at(source, "decorator", f"'{node.name}' is not decorated.", node, hint)


def _entry(source: Source, nodes: Sequence[ast.FunctionDef]) -> int:
    marked = [number for number, node in enumerate(nodes) if _is_entry(source, node)]
    if len(nodes) == 1:
        return 0
    if len(marked) != 1:
        message = f"{len(marked)} of {len(nodes)} functions are marked as entry; expected one."
        hint = "Write @T.prim_func(entry=True) above it."
        raise _error_at(source, "entry", message, nodes[marked[1] if marked else 0], hint)
    return marked[0]


def _is_entry(source: Source, node: ast.FunctionDef) -> bool:
    context = ParserContext(source, {}, {}, {})
    for item in node.decorator_list:
        for word in item.keywords if isinstance(item, ast.Call) else ():
            if word.arg == "entry":
                return required_bool(context, word.value, "entry")
            if word.arg not in ("private", "check_well_formed"):
                raise context.error("arguments", "T.prim_func takes entry=True only.", word.value)
    return False


def _error_at(source: Source, code: str, message: str, node: ast.AST, hint: str = "") -> ParseError:
    return ParserContext(source, {}, {}, {}).error(code, message, node, hint=hint)
