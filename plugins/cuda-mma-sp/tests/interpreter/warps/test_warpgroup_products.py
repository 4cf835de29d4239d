"""Products of warpgroups in the interpreter, with operands that are placed element by element."""

import re

import pytest
from warpgroup_operands import GPU, WarpgroupProblem

from benchmarks.gpu.instruction_kernels.warpgroup_kernels import WarpgroupUse, warpgroup_kernels_ptx
from gossamer_cuda_mma_sp.instructions.warpgroup_instructions import warpgroup_instruction
from gossamer_cuda_mma_sp.interpreter.memory import DeviceFaultError
from gossamer_ir.errors import InternalError

HALF = warpgroup_instruction(16, "float16", "float16", "float32")


@pytest.mark.parametrize(
    ("columns", "a", "b", "sums", "selector", "span"),
    [
        (64, "float16", "float16", "float16", 1, 128),
        (8, "bfloat16", "bfloat16", "float32", 0, 64),
        (24, "tfloat32", "tfloat32", "float32", 1, 64),
        (8, "float8_e4m3", "float8_e5m2", "float32", 0, 16),
        (16, "float8_e5m2", "float8_e5m2", "float16", 0, 64),
        (16, "uint8", "int8", "int32", 0, 128),
    ],
)
@pytest.mark.parametrize("a_is_shared", [False, True])
def test_a_warpgroup_adds_the_product(columns, a, b, sums, selector, span, a_is_shared):
    instruction = warpgroup_instruction(columns, a, b, sums)
    use = WarpgroupUse(instruction, a_is_shared=a_is_shared, selector=selector)
    problem = WarpgroupProblem(use, a_span=32, b_span=span)
    assert (problem.run() == problem.expected).all()


@pytest.mark.parametrize("span", [16, 32, 64, 128])
@pytest.mark.parametrize("by_k", [False, True])
def test_matrices_of_16_bits_are_stored_either_way(span, by_k):
    wide = warpgroup_instruction(128, "float16", "float16", "float32")
    use = WarpgroupUse(wide if not by_k else HALF, a_is_shared=True, a_is_by_k=by_k, b_is_by_k=by_k)
    # A row of B has 64 bytes along K.
    b_span = 16 if by_k and span == 32 else span
    problem = WarpgroupProblem(use, a_span=span, b_span=b_span)
    assert (problem.run() == problem.expected).all()


PTX = warpgroup_kernels_ptx([WarpgroupUse(HALF)], GPU)
PRODUCT = re.search(r"wgmma.mma_async[^;]*;", PTX)[0]
INPUT = re.search(r"}, {(%r\d+)", PRODUCT)[1]
STORED = re.search(r"st.shared.v4.b32\s+(\[%rd\d+\+8192\])", PTX)[1]
"""Where each lane stored a part of B."""


@pytest.fixture(scope="module")
def problem():
    return WarpgroupProblem(WarpgroupUse(HALF))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("wgmma.fence.sync.aligned;", "", "accessed after the last 'wgmma.fence'"),
        ("fence.proxy.async.shared::cta;", "", "without 'fence.proxy.async'"),
        ("bar.sync 	0;", "", "race: a thread reads"),
        ("wait_group.sync.aligned 0", "wait_group.sync.aligned 1", "has not waited for"),
        ("wgmma.commit_group.sync.aligned;", "", "has not waited for"),
        ("wgmma.commit_group", f"mov.b32 {INPUT}, 0; wgmma.commit_group", "has not waited for"),
        ("wgmma.commit_group", f"st.shared.b32 {STORED}, 0; wgmma.commit_group", "may still read"),
        (", 0, is_added", ", 1, is_added", "metadata of a matrix instruction is illegal"),
        (", 0, is_added", ", 2, is_added", "selector 2 of a product is undefined"),
        (".maxntid", "// .maxntid", "not all lanes of a warpgroup"),
    ],
)  # fmt: skip
def test_what_hardware_does_not_order_is_an_error(problem, old, new, message):
    assert old in PTX
    threads = 96 if "maxntid" in old else 128
    with pytest.raises(DeviceFaultError, match=message):
        problem.run(PTX.replace(old, new), threads=threads)


@pytest.mark.parametrize(
    ("descriptor", "message"),
    [
        (1 << 49, "base offset is 1"),
        (0x3FFF, "out of bounds"),
        (2 << 62 | 34 << 32 | 2, "a row ends after 96"),
        (64 << 16 | 64 << 32 | 4, "memory that nothing wrote"),
    ],
)
def test_a_descriptor_of_other_memory_is_an_error(problem, descriptor, message):
    ptx = PTX.replace(".b8 warpgroup_0_shared[24576]", ".b8 warpgroup_0_shared[32768]")
    at = descriptor if "wrote" not in message else descriptor | 1600
    with pytest.raises(DeviceFaultError, match=message):
        problem.run(ptx, b=at)


def test_products_of_one_group_are_added_in_order(problem):
    twice = PTX.replace(PRODUCT, PRODUCT * 2)
    sums = problem.initial
    assert (problem.run(twice) == 2 * (problem.expected - sums) + sums).all()


def test_a_product_that_is_not_added_replaces_the_sums(problem):
    replaced = PTX.replace("is_added, 1, 0", "is_added, 0, 0")
    assert (problem.run(replaced) == problem.expected - problem.initial).all()


def test_a_product_of_another_group_is_waited_for(problem):
    """The sums of the second product are those of the first one, whose group is complete."""
    commit = "wgmma.commit_group.sync.aligned;"
    late = PTX.replace(PRODUCT, f"{PRODUCT} {commit} {PRODUCT}").replace("aligned 0", "aligned 1")
    with pytest.raises(DeviceFaultError, match="has not waited for"):
        problem.run(late)


def test_an_instruction_outside_of_the_table_is_not_interpreted(problem):
    with pytest.raises(InternalError, match="does not know 'wgmma"):
        problem.run(PTX.replace("m64n16k32", "m64n20k32"))
