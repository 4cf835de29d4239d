"""The public functions that write script text, in the RFC's spelling."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gossamer_ir.errors import Place
from gossamer_ir.nodes import Expr, Function, Module, Param
from gossamer_ir.script.limits import require_module_depth
from gossamer_ir.script.parser.declarations.attributes import STAGE_KEY, STAGES_OF_LEVELS
from gossamer_ir.script.printer.context import Printer
from gossamer_ir.script.printer.declarations import (
    write_axis,
    write_buffer,
    write_each,
    write_fact,
    write_reducer,
    write_relation,
)
from gossamer_ir.script.printer.expressions import write_expr
from gossamer_ir.script.printer.statements import annotations_text, write_stmts
from gossamer_ir.script.printer.writer import Writer
from gossamer_ir.script.source import Span
from gossamer_support.typed_calls import typed


class PrintedModule(msgspec.Struct, frozen=True):
    """A text, and the span of each place of the module in it."""

    text: str
    spans: Mapping[Place, Span]


@typed
def print_module(module: Module) -> str:
    """Return the script of a module; `parse_module` gives an equal module of it.

    Raises `VerifyError` (`print.depth`) if the module is nested deeper than scripts may be.

    >>> from gossamer_ir.script import parse_module
    >>> module = parse_module('''
    ... @T.prim_func
    ... def fill(x: T.handle, n: T.int64) -> None:
    ...     X = T.match_buffer(x, (n,), "float32")
    ...     for i in T.serial(n):
    ...         X[i] = 1
    ... ''')
    >>> print(print_module(module))
    @T.prim_func
    def fill(
        x: T.handle,
        n: T.int64,
    ) -> None:
        T.func_attr({"sparse_tir_level": 0})
        X = T.match_buffer(x, (n,), "float32")
        for i in T.serial(n):
            X[i] = 1.0
    <BLANKLINE>
    >>> parse_module(print_module(module)) == module
    True
    """
    return print_with_places(module).text


def print_with_places(module: Module) -> PrintedModule:
    """Return the script of a module, with the span of each place."""
    require_module_depth(module)
    w = Writer()
    for number, function in enumerate(module.functions):
        if number:
            w.end_line()
            w.end_line()
        with w.at("functions", number):
            is_entry = len(module.functions) > 1 and function.name == module.entry
            w.end_line("@T.prim_func(entry=True)" if is_entry else "@T.prim_func")
            _write_function(w, module, function)
    return PrintedModule(w.text, w.spans)


@typed
def print_expr(expr: Expr) -> str:
    """Return the text of an expression; `parse_expr` gives an equal one of it and the dtypes of its names.

    >>> from gossamer_ir.core.build import add, index, index_var, mul
    >>> print_expr(add(mul(index_var("i"), index(4)), index(1)))
    'i * 4 + 1'
    """
    w = Writer()
    write_expr(w, expr, "expr")
    w.end_line()
    return w.text[:-1]


def _write_function(w: Writer, module: Module, function: Function) -> None:
    write_signature(w, function.name, function.params)
    with w.indent():
        first = w.position[0]
        _write_attributes(w, module, function)
        p = Printer(w)
        write_declarations(p, function)
        write_stmts(p, function.body, "body")
        if w.position[0] == first:
            w.end_line("pass")


def write_signature(w: Writer, name: str, params: tuple[Param, ...]) -> None:
    """Write `def name(...) -> None:`, with one parameter per line."""
    if not params:
        return w.end_line(f"def {name}() -> None:")
    w.end_line(f"def {name}(")
    with w.indent():
        for number, param in enumerate(params):
            with w.at("params", number):
                w.put(f"{param.name}: T.{param.dtype},")
            w.end_line()
    return w.end_line(") -> None:")


def _write_attributes(w: Writer, module: Module, function: Function) -> None:
    level = {stage: number for number, stage in STAGES_OF_LEVELS.items()}.get(module.stage)
    if level is None:
        w.end_line(f'T.stage("{module.stage}")')
        if function.annotations:
            w.end_line(f"T.func_attr({annotations_text(function.annotations)})")
        return
    attributes = ((STAGE_KEY, level), *function.annotations)
    w.end_line(f"T.func_attr({annotations_text(attributes)})")


def write_declarations(p: Printer, function: Function) -> None:
    """Write axes, buffers, reducers, relations and facts, one per line."""
    for buffer in function.buffers:
        p.declare(buffer)
    for field, write in (
        ("axes", write_axis),
        ("buffers", write_buffer),
        ("reducers", write_reducer),
        ("relations", write_relation),
        ("facts", write_fact),
    ):
        write_each(p.w, field, getattr(function, field), write)
