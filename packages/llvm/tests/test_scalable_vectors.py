"""Code for scalable vectors: the emitted text, and a few properties of the assembly for Arm SVE."""

from __future__ import annotations

import re

import pytest

from gossamer_ir.core.build import ZERO, add, constant, index, index_var, mul, sub
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Broadcast,
    Buffer,
    Cast,
    Compare,
    For,
    Lanes,
    Load,
    Ramp,
    Select,
    Store,
    VScale,
)

ROW, N = index_var("i"), index_var("n")
LANES = Lanes(4, scalable=True)
COUNT = mul(index(4), VScale())
FLOATS, INDICES = "float32xvscalex4", "int32xvscalex4"
NOTHING = Broadcast(constant(0, "float32"), LANES)
FIRST = Ramp(ZERO, index(1), LANES)
RUN = Ramp(mul(ROW, COUNT), index(1), LANES)


BUFFERS = (
    Buffer("X", (N,), "float32", "x"),
    Buffer("Y", (N,), "float32", "y"),
    Buffer("P", (N,), "int32", "p"),
)


@pytest.fixture
def sparse(module):
    """A module over two arrays of floats and one of 32-bit indices."""
    return lambda *body: module(*body, buffers=BUFFERS)


def below(ramp, limit=N):
    return Compare("lt", ramp, Broadcast(limit, LANES))


def rows(*body):
    """A loop whose variable, and so the ramp `RUN`, is known not to wrap."""
    return For("i", ZERO, index(1 << 20), body)


def gathered(mask):
    """Elements of X selected by 32-bit indices, which are widened where they are used."""
    where = Load("P", (RUN,), INDICES, mask, Broadcast(constant(0, "int32"), LANES))
    return Load("X", (Cast("int64xvscalex4", where),), FLOATS, mask, NOTHING)


def scratch(elements):
    """The allocation of a local buffer."""
    return Allocate(Buffer("S", (elements,), "float32", scope="local"))


MASKED = below(RUN)
OLD = Load("S", (FIRST,), FLOATS)
MASKED_OLD = Load("S", (FIRST,), FLOATS, MASKED, NOTHING)
STEPS = Cast(FLOATS, Ramp(constant(0, "int32"), constant(1, "int32"), LANES))
STORED = Store("Y", (FIRST,), OLD)


def accumulation():
    """One step of a sparse product: a vector of partial sums in a local buffer, under a mask."""
    term = Binary("mul", Load("X", (RUN,), FLOATS, MASKED, NOTHING), gathered(MASKED))
    return Store("S", (FIRST,), Select(MASKED, Binary("add", OLD, term), OLD))


STORED_ROW = Store("Y", (ROW,), constant(0, "float32"))


def test_a_mask_of_consecutive_lanes_is_one_intrinsic(sparse, text, checked, scalable):
    mask = below(RUN)
    source = checked(text(sparse(rows(Store("Y", (RUN,), gathered(mask), mask))), scalable))
    assert "llvm.get.active.lane.mask.nxv4i1.i64" in source
    assert "i64 0, i64" not in source
    assert "llvm.masked.load.nxv4i32.p0" in source
    assert "llvm.masked.gather.nxv4f32.nxv4p0" in source
    assert "llvm.masked.store.nxv4f32.p0" in source
    assert "call i64 @llvm.vscale.i64()" in source
    assert "llvm.stepvector" not in source


def test_a_mask_that_may_begin_below_zero_counts_the_lanes_left(sparse, text, checked, scalable):
    ramp = Ramp(sub(ROW, index(4)), index(1), LANES)
    source = checked(text(sparse(rows(Store("Y", (RUN,), NOTHING, below(ramp)))), scalable))
    assert "llvm.get.active.lane.mask.nxv4i1.i64(i64 0, i64" in source


def test_a_division_by_a_multiple_of_vscale_is_a_shift(sparse, text, checked, scalable):
    quotient = Binary("floordiv", sub(N, index(7)), COUNT)
    source = checked(text(sparse(For("i", ZERO, quotient, (STORED_ROW,))), scalable))
    assert "llvm.cttz.i64" in source
    assert "ashr i64" in source
    assert "div i64" not in source


@pytest.mark.parametrize(
    "ramp",
    [Ramp(mul(N, N), index(1), LANES), Ramp(ROW, index(2), LANES)],
    ids=["one that may wrap", "one with a stride"],
)
def test_other_ramps_are_compared_in_each_lane(sparse, text, checked, scalable, ramp):
    source = checked(text(sparse(rows(Store("Y", (RUN,), NOTHING, below(ramp)))), scalable))
    assert "llvm.stepvector.nxv4i64" in source
    assert "llvm.get.active.lane.mask" not in source


def test_a_buffer_of_a_multiple_of_vscale_is_one_vector(sparse, text, checked, scalable):
    source = text(sparse(scratch(COUNT), rows(accumulation()), STORED), scalable)
    assert checked(source)
    assert "alloca <vscale x 4 x float>, align 16" in source
    assert "calloc" not in source


@pytest.mark.parametrize(
    "elements",
    [N, mul(index(65), VScale()), mul(VScale(), VScale())],
    ids=["unknown", "more than a vector", "a square"],
)
def test_other_buffers_of_variable_size_are_on_the_heap(sparse, text, checked, scalable, elements):
    source = text(sparse(scratch(elements), rows(Store("Y", (RUN,), MASKED_OLD))), scalable)
    assert "calloc" in checked(source)


def test_lanes_after_the_end_of_a_buffer_of_constant_size_are_masked(
    sparse, text, checked, scalable
):
    """The memory of 64 elements may be shorter than a scalable vector."""
    source = text(sparse(scratch(index(64)), rows(Store("Y", (RUN,), MASKED_OLD))), scalable)
    assert "llvm.masked.load.nxv4f32.p0" in checked(source)


def test_lanes_are_counted_in_the_units_of_the_target(sparse, text, checked, scalable, riscv):
    """LLVM's vscale of RISC-V counts units of 64 bits, that of the language those of 128."""
    program = sparse(Store("P", (ZERO,), Cast("int32", VScale())), Store("Y", (FIRST,), STEPS))
    for_sve, for_riscv = (text(program, target_info) for target_info in (scalable, riscv))
    assert "<vscale x 4 x float>" in checked(for_sve)
    assert "llvm.stepvector.nxv4i32" in for_sve
    assert "udiv" not in for_sve
    assert "<vscale x 2 x float>" in checked(for_riscv)
    assert "llvm.stepvector.nxv2i32" in for_riscv
    assert "udiv exact i64 %v2, 2" in for_riscv
    assert not re.search(r"vscale x 4|nxv4", for_riscv)


def test_without_an_instruction_lane_numbers_are_the_mask(sparse, text, checked, riscv):
    """The loop then has a counter: no mask is carried to the next iteration."""
    vectors = Binary("floordiv", sub(add(N, COUNT), index(1)), COUNT)
    copied = Store("Y", (RUN,), Load("X", (RUN,), FLOATS, MASKED, NOTHING), MASKED)
    source = checked(text(sparse(For("i", ZERO, vectors, (copied,))), riscv))
    assert "llvm.get.active.lane.mask" not in source
    assert "icmp ult <vscale x 2 x i32>" in source
    assert not re.search(r"phi <vscale", source)


@pytest.mark.parametrize(
    ("scalable_target", "instructions"),
    [
        (
            "sve",
            (
                r"whilelo\tp\d+\.s",
                r"ld1w\t\{ z\d+\.s \}, p\d+/z, \[x\d+, x\d+, lsl #2\]",
                r"ld1w\t\{ z\d+\.s \}, p\d+/z, \[x\d+, z\d+\.s, sxtw #2\]",
                r"fmla\tz\d+\.s, p\d+/m",
            ),
        ),
        (
            "rvv",
            (
                r"vsetvli\t\w+, \w+, e32, m1, ",
                r"vle32\.v\tv\d+, \(\w+\), v0\.t",
                r"vluxei64\.v\tv\d+, \(\w+\), v\d+, v0\.t",
                r"vfm(acc|add)\.vv\tv\d+, v\d+, v\d+",
            ),
        ),
    ],
    indirect=["scalable_target"],
)
def test_a_sparse_product_is_a_mask_two_loads_a_gather_and_a_multiply_add(
    sparse, text, scalable_target, assemblies, instructions
):
    source = text(sparse(scratch(COUNT), rows(accumulation()), STORED), scalable_target.target_info)
    (code,) = assemblies([source], scalable_target)
    assert code is not None
    for instruction in instructions:
        assert re.search(instruction, code), instruction


def vectors_of(*body):
    """A loop over the vectors of N elements."""
    return For("i", ZERO, Binary("floordiv", sub(add(N, COUNT), index(1)), COUNT), body)


def accumulated(term):
    return Store("S", (FIRST,), Select(MASKED, Binary("add", OLD, term), OLD))


UNMASKED = Load("X", (RUN,), FLOATS)
ACCUMULATIONS = {
    "a sum": (accumulation(), True),
    "what may fail without a mask": (accumulated(UNMASKED), False),
    "a quotient of integers": (
        accumulated(Cast(FLOATS, Binary("floordiv", Broadcast(ROW, LANES), Broadcast(N, LANES)))),
        False,
    ),
    "an assignment": (Store("S", (FIRST,), MASKED_OLD), False),
    "an array": (Store("Y", (RUN,), Load("X", (RUN,), FLOATS, MASKED, NOTHING), MASKED), False),
}


@pytest.mark.parametrize("name", ACCUMULATIONS)
def test_a_masked_loop_tests_whether_it_is_empty_unless_it_only_accumulates(
    name, sparse, text, checked, scalable
):
    stmt, runs_empty = ACCUMULATIONS[name]
    source = text(sparse(scratch(COUNT), vectors_of(stmt), STORED), scalable)
    assert checked(source)
    assert "phi <vscale x 4 x i1>" in source
    assert ("icmp sgt i64 %p3, 0" not in source) == runs_empty
    assert ("llvm.smax.i64(i64 %p3, i64 0)" in source) == runs_empty
