"""The emitter tables list every node type, and errors name the unsupported construct."""

from typing import get_args

import pytest

from gossamer_ir import nodes
from gossamer_ir.core.build import ZERO, constant, index, index_var
from gossamer_ir.core.math_functions import INSTRUCTIONS
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import (
    Allocate,
    Barrier,
    Binary,
    Block,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Combine,
    Compare,
    Const,
    For,
    Function,
    IfThenElse,
    Iteration,
    LaneReduce,
    Lanes,
    Launch,
    Load,
    Module,
    ParallelFor,
    Ramp,
    Search,
    Store,
    ThreadExtent,
    TransposeReduce,
    VScale,
)
from gossamer_llvm import TargetInfo, TargetLowering, emit_llvm_ir
from gossamer_llvm.dispatch import EXPR_EMITTERS, STMT_EMITTERS
from gossamer_llvm.values.operations import CALL_INTRINSICS

TARGET = TargetInfo("x86_64-unknown-linux-gnu")
ONE = constant(1, "float32")
ROW = index_var("i")


def test_every_expression_is_in_the_table():
    assert set(EXPR_EMITTERS) == set(get_args(nodes.Expr))


def test_every_statement_is_in_the_table():
    assert set(STMT_EMITTERS) == set(get_args(nodes.Stmt))


def test_every_function_that_is_an_instruction_has_an_intrinsic():
    # `tf32` is a few instructions on integers.
    assert {*CALL_INTRINSICS, "tf32"} == INSTRUCTIONS


def stores(value):
    return Store("X", (ZERO,), value)


def wide(value, lanes, *, scalable=False):
    return Broadcast(value, Lanes(lanes, scalable=scalable))


def deep(levels):
    value = ONE
    for _ in range(levels):
        value = Binary("add", value, ONE)
    return value


NESTED = ParallelFor("rows", "i", ZERO, index(1), ())
REFUSED = {
    "llvm.search": stores(Cast("float32", Search("exact", "P", (), ZERO, ZERO, ZERO))),
    "llvm.combine": Combine("f", ()),
    "llvm.block": Block("b", (), ()),
    "llvm.iteration": Iteration("it", (), "", (), ()),
    "llvm.for.vectorized": For("i", ZERO, index(4), (), kind="vectorized"),
    "llvm.for.parallel": For("i", ZERO, index(4), (), kind="parallel"),
    "llvm.for.atomic": For("i", ZERO, index(4), (), annotations=(("atomic", True),)),
    "llvm.barrier": Barrier(),
    "llvm.for.thread_binding": For("i", ZERO, index(4), (), "thread_binding", "threadIdx.x"),
    "llvm.scalable": stores(LaneReduce("add", wide(ONE, 4, scalable=True))),
    "llvm.lanes": stores(LaneReduce("add", wide(ONE, 3))),
    "llvm.depth": stores(deep(400)),
    "llvm.call.exp": stores(Call("exp", (ONE,), "float32")),
    "llvm.call.ceil": stores(Call("ceil", (ONE,), "float32")),
    "llvm.floordiv": stores(Binary("floordiv", ONE, ONE)),
    "llvm.if_then_else.vector": stores(
        LaneReduce("add", IfThenElse(wide(Const("bool", "True"), 4), wide(ONE, 4), wide(ONE, 4)))
    ),
    "llvm.scope.shared": Allocate(Buffer("T", (index(4),), "float32", scope="shared")),
    "llvm.launch.threads": Launch("rows", (), (ThreadExtent("threadIdx.x", index(4)),)),
    "llvm.lane_reduce.and": stores(LaneReduce("and", wide(ONE, 4))),
    "llvm.and": stores(LaneReduce("add", TransposeReduce("and", (wide(ONE, 4),) * 2))),
}


@pytest.mark.parametrize("code", REFUSED)
def test_refused_by_name(module, text, code):
    rows = Function("rows", (), ())
    with pytest.raises(UnsupportedError) as caught:
        text(module(REFUSED[code], others=(rows,)))
    assert caught.value.code == code


def test_a_target_lowers_nodes_before_the_table(module):
    """A statement that the target leaves is emitted as on all targets."""

    def emit_barrier(emitter, _node):
        emitter.call_void("llvm.amdgcn.s.barrier", "")
        return True

    lowering = TargetLowering(stmts={Barrier: emit_barrier, Store: lambda *_: False})
    text = emit_llvm_ir(module(Barrier(), stores(ONE)), target_info=TARGET, lowering=lowering)
    assert "call void @llvm.amdgcn.s.barrier()" in text
    assert "store float" in text


def test_vscale_is_refused_where_vectors_are_fixed(module, text):
    with pytest.raises(UnsupportedError) as caught:
        text(module(Store("P", (ZERO,), VScale())))
    assert caught.value.code == "llvm.scalable"


@pytest.mark.parametrize("stage", ["coordinate", "position", "loop"])
def test_other_stages_are_refused(text, stage):
    with pytest.raises(UnsupportedError) as caught:
        text(Module(stage, (Function("main", (), ()),), "main"))
    assert caught.value.code == f"llvm.stage.{stage}"


@pytest.mark.parametrize(
    ("call", "code"),
    [(NESTED, "llvm.parallel_for.nested"), (Launch("rows", ()), "llvm.launch.nested")],
)
def test_only_the_entry_calls(module, text, call, code):
    inner = Function("inner", (), (call,))
    rows = Function("rows", (), ())
    with pytest.raises(UnsupportedError) as caught:
        text(module(Launch("inner", ()), others=(inner, rows)))
    assert caught.value.code == code


def test_lanes_that_are_no_power_of_two_never_reach_llvm(module, text):
    run = Ramp(ZERO, index(1), Lanes(3))
    mask = Compare("lt", run, Broadcast(index(2), Lanes(3)))
    load = Load("X", (run,), "float32x3", mask, wide(ONE, 3))
    with pytest.raises(UnsupportedError, match="3 lanes"):
        text(module(Store("Y", (run,), load, mask)))
