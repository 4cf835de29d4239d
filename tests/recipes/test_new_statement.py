"""A new type of statement needs the entries of the recipe "Add a node" in docs/extending and nothing else.

This file defines one, and sends it from its text through primitives and all passes to a kernel.
"""

from __future__ import annotations

import ast

import numpy as np
import pytest

from gossamer_generic_cpu.backend import GenericCpu
from gossamer_ir.core.build import ZERO
from gossamer_ir.core.statement_kinds import ONE_THREAD, STMT_KINDS, Body, Effects, StmtKind
from gossamer_ir.errors import UnsupportedError, VerifyError
from gossamer_ir.interchange.records import Target
from gossamer_ir.interpret import run
from gossamer_ir.interpret.interpreter_errors import InterpreterError
from gossamer_ir.interpret.statements import statement_translators as translations
from gossamer_ir.nodes import Expr, For, Guard, Name, Node, Stmt
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.script.parser.expressions.expression_parsers import index_expr
from gossamer_ir.script.parser.statements import statement_parsers as parsers
from gossamer_ir.script.printer.expressions import write_index
from gossamer_ir.script.printer.statements import STMT_PRINTERS, write_body
from gossamer_ir.traversal.walk import collect, stmts
from gossamer_ir.verify import verify
from gossamer_ir.verify.expressions.check_expr import check_size
from gossamer_ir.verify.stages.node_checks import RULES_BY_STAGE
from gossamer_ir.verify.statements.statement_checks import check_body
from gossamer_llvm.control.control_flow import emit_for
from gossamer_llvm.dispatch import STMT_EMITTERS
from gossamer_lower.pipelines.lower_to_flat import lower_to_flat
from gossamer_schedule import ScheduleBuilder
from gossamer_schedule.cursor.cursor_at import ADDRESSABLE_BODIES

pytestmark = pytest.mark.unserialized  # its type is not in the schema


class Repeat(Node, frozen=True):
    """Runs its body a number of times. It is a loop, but no pass or primitive knows it as one."""

    var: Name
    times: Expr
    body: tuple[Stmt, ...]


def as_loop(node, body=()):
    return For(node.var, ZERO, node.times, body)


KIND = StmtKind(
    lambda stmt: Effects((stmt.times,), bodies=(Body("body", stmt.body, repeats=True),)),
    ONE_THREAD,
    vars=lambda stmt: (stmt.var,),
    loop=as_loop,
    is_loop=True,
)


def write(p, node):
    p.w.put("with T.repeat(")
    write_index(p.w, node.times, "times")
    p.w.end_line(f") as {node.var}:")
    write_body(p, node.body, "body")


def parse(context, node, call):
    times = index_expr(context, call.args[0])
    target = node.items[0].optional_vars
    assert isinstance(target, ast.Name)
    context.scopes.append({})
    var = context.bind_var(target.id).name
    body = parsers.parse_body(context, node.body)
    context.scopes.pop()
    return Repeat(var, times, body)


def check(context, node, place):
    check_size(context, node.times, place.down("times"))
    with context.scope():
        context.define(node.var, "int64", place)
        check_body(context, node.body, place)


def translate(node, translator):
    times, body = translator.expr(node.times), translator.body(node.body)

    def execute(frame):
        for value in range(times(frame)):
            frame.values[node.var] = np.int64(value)
            body(frame)

    return execute


@pytest.fixture(autouse=True)
def entries(monkeypatch):
    """The entries of the new statement, in the order of the list."""
    monkeypatch.setitem(ADDRESSABLE_BODIES, Repeat, ("body",))  # made from the union `Stmt`
    monkeypatch.setitem(STMT_KINDS, Repeat, KIND)
    monkeypatch.setitem(STMT_PRINTERS, Repeat, write)
    monkeypatch.setitem(parsers.WITH_PARSERS, "repeat", parse)
    for stage in ("position", "loop", "flat"):
        monkeypatch.setitem(RULES_BY_STAGE[stage].stmts, Repeat, check)
    monkeypatch.setitem(translations.STMT_TRANSLATIONS, Repeat, translate)
    monkeypatch.setitem(
        STMT_EMITTERS,
        Repeat,
        lambda emitter, node: emit_for(emitter, as_loop(node, node.body)),
    )


TEXT = """
@T.prim_func
def gather(x: T.handle, p: T.handle, y: T.handle, n: T.int64, m: T.int64):
    T.stage("loop")
    X = T.match_buffer(x, (n,), "float64")
    P = T.match_buffer(p, (n,), "int64")
    Y = T.match_buffer(y, (n,), "float64")
    with T.repeat(m) as r:
        scale = T.cast(r, "float64") + 1.0
        for i in T.serial(n):
            with T.block("sums"):
                vi = T.axis.spatial(n, i)
                Y[vi] = Y[vi] + X[P[vi]] * scale
"""


REDUCTION = (
    TEXT[: TEXT.index("        scale")]
    + """
        for i in T.serial(n):
            for j in T.serial(3):
                with T.block("sums"):
                    vi, vj = T.axis.remap("SR", [i, j])
                    with T.init():
                        Y[vi] = 0.0
                    Y[vi] = Y[vi] + X[P[vi]] * T.cast(r + vj, "float64")
"""
)


def arguments(n=21):
    rng = np.random.default_rng(0)
    x, p = rng.integers(-9, 9, n).astype(np.float64), rng.integers(0, n, n)
    return {"x": x, "p": p, "y": np.zeros(n), "n": n, "m": 3}


def result(x, p, **_others):
    return x[p] * (1 + 2 + 3)


def interpreted(module):
    kernel_arguments = arguments()
    run(module, kernel_arguments)
    return kernel_arguments["y"]


def test_its_text_is_read_and_printed():
    module = parse_module(TEXT)
    (loop,) = collect(Repeat, module)
    assert parse_module(print_module(module)) == module
    assert "with T.repeat(m) as r:" in print_module(module)
    assert [type(stmt).__name__ for stmt in stmts((loop,))][:3] == ["Repeat", "Let", "For"]


def test_a_stage_without_it_refuses_it_by_name(monkeypatch):
    monkeypatch.delitem(RULES_BY_STAGE["loop"].stmts, Repeat)
    with pytest.raises(VerifyError, match="Repeat is not allowed here"):
        verify(parse_module(TEXT))


def test_a_new_statement_is_interpreted():
    np.testing.assert_array_equal(interpreted(parse_module(TEXT)), result(**arguments()))


def test_primitives_schedule_the_body_of_a_new_statement():
    module = parse_module(TEXT)
    builder = ScheduleBuilder(module)
    _, inner = builder.split("i", factors=(None, 4)).names
    builder.unroll(inner)
    changed = builder.module
    np.testing.assert_array_equal(interpreted(changed), result(**arguments()))


def test_all_passes_lower_a_new_statement():
    flat = lower_to_flat(parse_module(TEXT))
    (loop,) = collect(Repeat, flat)
    assert collect(Guard, loop)
    np.testing.assert_array_equal(interpreted(flat), result(**arguments()))


def test_an_init_in_it_is_placed_in_each_iteration():
    flat, kernel_arguments = lower_to_flat(parse_module(REDUCTION)), arguments()
    np.testing.assert_array_equal(
        interpreted(flat), kernel_arguments["x"][kernel_arguments["p"]] * (2 + 3 + 4)
    )


def test_the_interpreter_refuses_an_init_in_it_by_name():
    with pytest.raises(InterpreterError, match="A 'Repeat' around a block with an init"):
        interpreted(parse_module(REDUCTION))


def test_a_vectorized_loop_with_it_is_refused_by_name():
    head = "    with T.repeat(m) as r:"
    text = TEXT.replace(head, f"    for l in T.vectorized(4):\n  {head}")
    with pytest.raises(UnsupportedError, match="Repeat has no vector form"):
        lower_to_flat(parse_module(text))


def test_a_backend_compiles_a_new_statement():
    kernel_arguments, backend = arguments(), GenericCpu()
    artifact = backend.compile(lower_to_flat(parse_module(TEXT)), Target.parse("generic-cpu"))
    kernel = backend.load(artifact)
    kernel(*kernel_arguments.values())
    np.testing.assert_array_equal(kernel_arguments["y"], result(**kernel_arguments))
