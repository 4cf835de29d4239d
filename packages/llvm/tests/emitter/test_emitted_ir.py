"""Properties of the emitted LLVM IR; LLVM parses and verifies every module."""

import re

import pytest

from gossamer_ir.core.build import ZERO, add, constant, handle, index, index_var, mul
from gossamer_ir.nodes import (
    Binary,
    Broadcast,
    Buffer,
    Compare,
    For,
    Function,
    Guard,
    LaneReduce,
    Lanes,
    Launch,
    Let,
    Load,
    Module,
    Param,
    Ramp,
    Store,
    TransposeReduce,
    Var,
)
from gossamer_llvm import emit_llvm_ir
from gossamer_llvm.target_info import TargetInfo

ROW, N = index_var("i"), index_var("n")
WIDE = Lanes(16)
RUN = Ramp(mul(ROW, index(16)), index(1), WIDE)
NOTHING = Broadcast(constant(0, "float32"), WIDE)


def tail(limit):
    return Compare("lt", RUN, Broadcast(limit, WIDE))


def copy(predicate):
    rest = NOTHING if predicate is not None else None
    load = Load("X", (RUN,), "float32x16", predicate, rest)
    return Store("Y", (RUN,), load, predicate)


def test_no_name_of_the_module_reaches_the_text(text, checked):
    names = ["evil", "sneaky", "buffy", "looper", "letty", "handy", "kernel_of_user"]
    buffer = Buffer("buffy", (Var("sneaky", "int64"),), "float32", "handy")
    body = For("looper", ZERO, Var("sneaky", "int64"), (
        Let(Var("letty", "int64"), add(index_var("looper"), index(1))),
        Guard(Compare("lt", index_var("letty"), index(9)), "buffy"),
        Store("buffy", (index_var("letty"),), constant(1, "float32")),
    ))  # fmt: skip
    inner = Function(
        "evil", (Param("handy", "handle"), Param("sneaky", "int64")), (body,), buffers=(buffer,)
    )
    entry = Function(
        "kernel_of_user",
        (Param("handy", "handle"), Param("sneaky", "int64")),
        (Launch("evil", (handle("handy"), Var("sneaky", "int64"))),),
        buffers=(buffer,),
    )
    source = text(Module("flat", (entry, inner), "kernel_of_user"))
    assert checked(source)
    assert not [name for name in names if name in source]
    assert len(re.findall(r"^define i64 @gossamer_kernel\(", source, re.M)) == 1
    assert len(re.findall(r"^define (?!internal)", source, re.M)) == 1


def test_parameters_follow_the_abi(checked):
    params = [("a", "handle"), ("f", "float32"), ("d", "float64"), ("i", "int32"), ("b", "bool")]
    function = Function("main", tuple(Param(*pair) for pair in params), ())
    source = emit_llvm_ir(
        Module("flat", (function,), "main"), target_info=TargetInfo("x86_64-unknown-linux-gnu")
    )
    assert checked(source)
    expected = "float %p1, double %p2, i64 %p3, i64 %p4, ptr %ws)"
    assert f"(ptr noalias nocapture readonly %p0, {expected}" in source


def test_vectors_contract_and_only_lane_reductions_reassociate(module, text, checked):
    run = Ramp(ZERO, index(1), WIDE)
    x = Load("X", (run,), "float32x16")
    value = LaneReduce("add", Binary("add", Binary("mul", x, x), Binary("sub", x, x)))
    source = text(module(Store("Y", (ZERO,), value)))
    assert checked(source)
    for operation in ("fmul", "fadd", "fsub"):
        assert f"{operation} contract <16 x float>" in source
    assert source.count("reassoc") == 1
    scalar = Load("X", (ZERO,), "float32")
    plain = text(module(Store("Y", (ZERO,), Binary("mul", scalar, scalar))))
    assert "fmul float" in plain
    assert "contract" not in plain
    assert "call reassoc float @llvm.vector.reduce.fadd.v16f32(float 0x8000000000000000," in source
    assert not re.search(r"\b(nnan|ninf|nsz|fast)\b", source)


@pytest.mark.parametrize(
    ("values", "lanes", "shuffles", "additions"),
    [
        (16, 16, 30, 15),
        (2, 2, 2, 1),
        (8, 16, 16, 8),
        (2, 16, 8, 4),
        (16, 8, 29, 14),
        (64, 2, 95, 32),
    ],
)
def test_a_transpose_reduce_takes_two_shuffles_for_each_addition(
    module, text, checked, values, lanes, shuffles, additions
):
    rows = (Ramp(index(lanes * at), index(1), Lanes(lanes)) for at in range(values))
    vectors = tuple(Load("X", (row,), f"float32x{lanes}") for row in rows)
    where = Ramp(ZERO, index(1), Lanes(values))
    source = text(module(Store("Y", (where,), TransposeReduce("add", vectors))))
    assert checked(source)
    assert source.count("shufflevector") == shuffles
    assert source.count("fadd") == additions
    assert "reassoc" not in source


def test_equal_computations_in_a_block_are_written_once(module, text):
    at = add(mul(N, index(3)), index(1))
    source = text(module(Store("X", (at,), Load("Y", (at,), "float32"))))
    assert source.count("mul i64") == 1


def test_computations_stand_before_the_loops_that_do_not_change_them(module, text, checked):
    """The mask of a remainder depends on the outer loop only."""
    j = index_var("j")
    inner = For("j", ZERO, N, (Store("Y", (j,), constant(1, "float32")), copy(tail(N))))
    source = text(module(For("i", ZERO, N, (inner,))))
    assert checked(source)
    blocks = re.split(r"^b\d+:$", source, flags=re.M)
    loops = [number for number, block in enumerate(blocks) if "phi i64" in block]
    masks = [number for number, block in enumerate(blocks) if "icmp ult <16 x i32>" in block]
    assert len(loops) == 2
    assert masks == [loops[0]]


def test_loads_stay_in_their_loops(module, text, checked):
    load = Load("X", (ZERO,), "float32")
    source = text(module(For("i", ZERO, N, (Store("X", (ROW,), Binary("add", load, load)),))))
    assert checked(source)
    blocks = re.split(r"^b\d+:$", source, flags=re.M)
    assert ["phi i64" in block for block in blocks if "load float" in block] == [True]
