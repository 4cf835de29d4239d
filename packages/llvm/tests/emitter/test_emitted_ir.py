"""Properties of the emitted LLVM IR; LLVM parses and verifies every module."""

import re

import pytest

from gossamer_ir.core.build import ZERO, add, constant, handle, index, index_var, mul, sub
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Broadcast,
    Buffer,
    Cast,
    Compare,
    Const,
    For,
    Function,
    Guard,
    LaneReduce,
    Lanes,
    Launch,
    Let,
    Load,
    Module,
    ParallelFor,
    Param,
    Prefetch,
    Ramp,
    Reinterpret,
    Store,
    TransposeReduce,
    Var,
)
from gossamer_llvm import emit, guarded_buffers
from gossamer_llvm.abi import Abi

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


def test_the_address_of_an_array_is_a_number(module, text, checked):
    where = Binary("bitand", Reinterpret("int64", Var("x", "handle")), index(7))
    source = checked(text(module(Store("Y", (where,), constant(1, "float32")))))
    assert source.count("ptrtoint ptr %p") == 1


def test_a_distance_from_a_shared_place_is_a_constant(module, text, checked):
    """`16 - n` and `32 - n`, computed separately, would need a register each."""
    early = [Ramp(sub(index(first), N), index(1), WIDE) for first in (16, 32)]
    source = checked(text(module(*(Store("Y", (run,), NOTHING) for run in early))))
    assert ", i64 16" in source
    assert ", i64 32" in source


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
    source = emit(Module("flat", (function,), "main"), abi=Abi("x86_64-unknown-linux-gnu"))
    assert checked(source)
    expected = "float %p1, double %p2, i64 %p3, i64 %p4, ptr %ws)"
    assert f"(ptr noalias nocapture readonly %p0, {expected}" in source


def test_runs_become_vector_loads_of_element_alignment(loop, text, checked):
    source = text(loop(copy(None)))
    assert checked(source)
    assert re.search(r"load <16 x float>, ptr %v\d+, align 4", source)
    assert re.search(r"store <16 x float> %v\d+, ptr %v\d+, align 4", source)
    assert "llvm.masked" not in source


@pytest.mark.parametrize(
    ("predicate", "operations"),
    [
        (tail(N), ["llvm.masked.load.v16f32.p0", "llvm.masked.store.v16f32.p0"]),
        (Broadcast(Const("bool", "True"), WIDE), []),
        (Broadcast(Const("bool", "False"), WIDE), []),
        (
            Compare("lt", Ramp(ZERO, index(1), WIDE), Broadcast(index(16), WIDE)),
            [],
        ),
    ],
)
def test_constant_masks_are_folded(loop, text, checked, predicate, operations):
    source = text(loop(copy(predicate)))
    assert checked(source)
    used = set(re.findall(r"llvm\.masked\.\w+\.\w+\.p0", source))
    assert used == set(operations)


def test_lane_masks_compare_32_bit_lanes(loop, text, checked):
    source = text(loop(copy(tail(N))))
    assert checked(source)
    assert re.search(r"icmp ult <16 x i32> <i32 0, i32 1,", source)
    assert "<16 x i64>" not in source


EIGHT = Ramp(mul(ROW, index(8)), index(1), Lanes(8))
NARROW = (
    Buffer("J", (N, index(8), index(1)), "int32", "j"),
    Buffer("X", (N,), "float32", "x"),
    Buffer("Y", (N,), "float32", "y"),
)


def test_few_lanes_are_gathered_with_indices_in_pairs(module, text, checked):
    lane = Ramp(ZERO, index(1), Lanes(8))
    where = Cast("int64x8", Load("J", (ROW, lane, ZERO), "int32x8"))
    gather = Store("Y", (EIGHT,), Load("X", (where,), "float32x8"))
    source = text(module(For("i", ZERO, N, (gather,)), buffers=NARROW))
    assert checked(source)
    assert len(re.findall(r"load i64, ptr %v\d+, align 4", source)) == 4
    assert source.count("load float, ptr") == 8
    assert "llvm.masked" not in source


def test_few_lanes_are_scattered_as_scalar_stores(module, text, checked):
    lane = Ramp(ZERO, index(1), Lanes(8))
    where = Cast("int64x8", Load("J", (ROW, lane, ZERO), "int32x8"))
    scatter = Store("Y", (where,), Load("X", (EIGHT,), "float32x8"))
    source = text(module(For("i", ZERO, N, (scatter,)), buffers=NARROW))
    assert checked(source)
    assert source.count("store float") == 8
    assert "llvm.masked" not in source


def test_indices_that_the_function_writes_are_loaded_one_by_one(module, text, checked):
    lane = Ramp(ZERO, index(1), Lanes(8))
    narrow = Load("J", (ROW, lane, ZERO), "int32x8")
    gather = Store("Y", (EIGHT,), Load("X", (Cast("int64x8", narrow),), "float32x8"))
    written = Store("J", (ROW, ZERO, ZERO), constant(0, "int32"))
    source = text(module(For("i", ZERO, N, (gather, written)), buffers=NARROW))
    assert checked(source)
    assert not re.findall(r"load i64, ptr %v\d+, align 4", source)


def test_lanes_beside_a_scalar_offset_stay_narrow(module, text, checked):
    narrow = Load("J", (ROW, Ramp(ZERO, index(1), WIDE), ZERO), "int32x16")
    widened = Cast("int64x16", narrow)
    for sum_ in (
        Binary("add", widened, Broadcast(N, WIDE)),
        Binary("add", Broadcast(N, WIDE), widened),
    ):
        gather = Store("Y", (RUN,), Load("X", (sum_,), "float32x16"))
        source = text(module(For("i", ZERO, N, (gather,)), buffers=NARROW))
        assert checked(source)
        assert "llvm.masked.gather.v16f32.v16p0" in source
        assert re.search(r"getelementptr float, ptr %v\d+, <16 x i32>", source)


def test_a_run_in_front_of_single_elements_is_a_vector(module, text, checked):
    lane = Ramp(ZERO, index(1), Lanes(8))
    at = (ROW, lane, ZERO)
    mask = Compare("lt", Load("J", at, "int32x8"), Broadcast(constant(3, "int32"), Lanes(8)))
    nothing = Broadcast(constant(0, "int32"), Lanes(8))
    run = Store("J", at, Load("J", at, "int32x8", mask, nothing), mask)
    source = text(module(For("i", ZERO, N, (run,)), buffers=NARROW))
    assert checked(source)
    assert "llvm.masked.load.v8i32.p0" in source
    assert "llvm.masked.store.v8i32.p0" in source


@pytest.mark.parametrize("is_bound", [False, True], ids=["read in place", "bound by a let"])
def test_vectors_of_a_gathered_row_share_its_pointer(module, text, checked, is_bound):
    x = Buffer("X", (N, index(32)), "float32", "x")
    p, y = Buffer("P", (N,), "int64", "p"), Buffer("Y", (N, index(32)), "float32", "y")
    number = Load("P", (ROW,), "int64")
    row = Var("row", "int64")
    runs = [Ramp(index(first), index(1), WIDE) for first in (0, 16)]
    loads = [Load("X", (row if is_bound else number, run), "float32x16") for run in runs]
    copies = [Store("Y", (ROW, run), load) for run, load in zip(runs, loads, strict=True)]
    body = [Let(row, number), *copies] if is_bound else copies
    source = checked(text(module(For("i", ZERO, N, tuple(body)), buffers=(x, y, p))))
    assert source.count("asm") == 1
    assert re.search(r"getelementptr float, ptr %v\d+, i64 16", source)


def test_vector_indices_gather_and_scatter(loop, text, checked):
    where = Load("P", (RUN,), "int64x16")
    source = text(loop(Store("Y", (where,), Load("X", (where,), "float32x16"))))
    assert checked(source)
    assert "llvm.masked.gather.v16f32.v16p0" in source
    assert "llvm.masked.scatter.v16f32.v16p0" in source


def test_masked_access_to_private_memory_moves_whole_vectors(module, text, checked):
    acc = Buffer("acc", (index(20),), "float32", scope="local")
    run = Ramp(index(16), index(1), WIDE)
    mask = Compare("lt", run, Broadcast(N, WIDE))
    old = Load("acc", (run,), "float32x16", mask, NOTHING)
    source = text(module(Allocate(acc), Store("acc", (run,), Binary("add", old, old), mask)))
    assert checked(source)
    assert "llvm.masked" not in source
    assert "alloca [64 x float], align 64" in source


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


def test_addresses_of_constant_indices_are_constant(module, text):
    acc = Buffer("acc", (index(2), index(3), index(4)), "float32", scope="local")
    store = Store("acc", (index(1), index(2), index(3)), constant(1, "float32"))
    source = text(module(Allocate(acc), store))
    assert "getelementptr inbounds float, ptr %v2, i64 23" in source


def test_loops_are_not_unrolled_unless_asked(loop, module, text, checked):
    assert "llvm.loop.unroll.disable" in checked(text(loop(copy(None))))
    asked = For("i", ZERO, N, (copy(None),), annotations=(("unroll", 4),))
    source = checked(text(module(asked)))
    assert '!"llvm.loop.unroll.count", i32 4' in source
    assert "unroll.disable" not in source


def test_loops_and_functions_are_aligned(loop, text, checked):
    source = checked(text(loop(copy(None))))
    assert '!"llvm.loop.align", i32 64' in source
    assert "align 64 {" in source


def test_loops_of_constant_extent_need_no_test(module, text, checked):
    assert checked(text(module(For("i", ZERO, index(0), (copy(None),))))).count("phi") == 0
    assert "icmp sgt" not in text(module(For("i", ZERO, index(3), (copy(None),))))


def test_guards_are_numbered_by_buffer(module, text, checked):
    guards = [
        Guard(Compare("lt", N, index(limit)), name)
        for limit, name in ((1, "Y"), (2, "X"), (3, "Y"))
    ]
    flat = module(*guards)
    assert guarded_buffers(flat) == ("Y", "X")
    numbers = re.findall(r"store atomic i64 (\d)", checked(text(flat)))
    assert numbers == ["0", "1", "0"]


def test_prefetch_addresses_may_lie_outside(loop, text, checked):
    source = text(loop(Prefetch("X", (add(ROW, index(1000)),))))
    assert checked(source)
    assert "llvm.prefetch.p0" in source
    assert "inbounds float" not in source


def parallel(args, params):
    begin, end = index_var("begin"), index_var("end")
    inner = Function(
        "rows",
        (Param("begin", "int64"), Param("end", "int64"), *params),
        (For("i", begin, sub(end, begin), (Store("A", (ROW,), Load("B", (ROW,), "float32")),)),),
        buffers=(Buffer("A", (N,), "float32", "a"), Buffer("B", (N,), "float32", "b")),
    )
    weight = add(Load("P", (ROW,), "int64"), mul(N, ROW))
    return ParallelFor("rows", "i", ZERO, N, args, weight, index(100)), inner


def test_parallel_loops_call_through_the_workspace(module, text, checked):
    params = (Param("a", "handle"), Param("b", "handle"), Param("n", "int64"))
    call, inner = parallel((handle("y"), handle("x"), N), params)
    source = text(module(call, others=(inner,)))
    assert checked(source)
    assert re.search(r"call void %v\d+\(ptr @h3, ptr %v\d+, i32 %v\d+, i32 0\)", source)
    assert "atomicrmw add ptr" in source
    assert "ptr noalias nocapture %p2, ptr noalias nocapture readonly %p3" in source


def test_pointers_that_are_passed_twice_may_alias(module, text, checked):
    params = (Param("a", "handle"), Param("b", "handle"), Param("n", "int64"))
    call, inner = parallel((handle("x"), handle("x"), N), params)
    source = text(module(call, others=(inner,)))
    assert checked(source)
    assert "ptr nocapture %p2, ptr nocapture readonly %p3" in source


def test_computations_stand_before_the_loops_that_do_not_change_them(module, text, checked):
    """The mask of a remainder depends on the outer loop only."""
    j = index_var("j")
    inner = For("j", ZERO, N, (Store("Y", (j,), constant(1, "float32")), copy(tail(N))))
    source = text(module(For("i", ZERO, N, (inner,))))
    assert checked(source)
    blocks = re.split(r"^b\d+:$", source, flags=re.M)
    loops = [count for count, block in enumerate(blocks) if "phi i64" in block]
    masks = [count for count, block in enumerate(blocks) if "icmp ult <16 x i32>" in block]
    assert len(loops) == 2
    assert masks == [loops[0]]


def test_loads_stay_in_their_loops(module, text, checked):
    load = Load("X", (ZERO,), "float32")
    source = text(module(For("i", ZERO, N, (Store("X", (ROW,), Binary("add", load, load)),))))
    assert checked(source)
    blocks = re.split(r"^b\d+:$", source, flags=re.M)
    assert ["phi i64" in block for block in blocks if "load float" in block] == [True]
