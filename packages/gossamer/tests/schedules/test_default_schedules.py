"""Properties of default schedules for every size, asserted on the flat code: accumulators in registers,
masked remainders, small code, and prefetches only for operands that are not in the cache.
"""

from __future__ import annotations

import re
from functools import cache

import pytest

from gossamer.compilation.pipeline import flat_module
from gossamer.operator_calls.operator_program import Variant, module_of
from gossamer.operators import operator_named
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.interchange.records import Stats
from gossamer_ir.nodes import Allocate, For, Load, Prefetch, Store
from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.walk import collect, walk

pytestmark = pytest.mark.unserialized

SIZES = [
    1,
    2,
    3,
    7,
    8,
    15,
    16,
    17,
    31,
    33,
    50,
    64,
    100,
    127,
    128,
    129,
    255,
    256,
    257,
    300,
    511,
    512,
]
SIZES += [513, 700, 1000, 1024, 1025, 4095, 4096, 10_000, None]
MAX_TILE, MAX_TILES = 256, 4
CACHES = "l2=1048576,l3=33554432"
REGISTERS = {128: 16, 256: 16, 512: 32}

BSR = """
@T.prim_func
def bsr(a: T.handle, b: T.handle, c: T.handle, p: T.handle, q: T.handle,
        mb: T.int64, nb: T.int64, nnzb: T.int64, h: T.int64, f: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    IO = T.sp.dense_fixed(mb)
    JO = T.sp.compressed_varied(IO, (nb, nnzb), (p, q), "int32")
    II = T.sp.dense_fixed(h)
    JI = T.sp.dense_fixed(h)
    NO = T.sp.dense_fixed(nb)
    K = T.sp.dense_fixed(f)
    A = T.sp.match_buffer(a, (IO, JO, II, JI), "float32")
    B = T.sp.match_buffer(b, (NO, JI, K), "float32")
    C = T.sp.match_buffer(c, (IO, II, K), "float32")
    with T.sp.iteration([IO, JO, II, JI, K], "SRSRS", "bsr") as [io, jo, ii, ji, k]:
        with T.init():
            C[io, ii, k] = 0.0
        C[io, ii, k] = C[io, ii, k] + A[io, jo, ii, ji] * B[jo, ji, k]
"""


def target_of(bits):
    return f"generic-cpu:vector_bits={bits},{CACHES}"


@cache
def spmm(features, *, bits=512, dtype="float32", stats=None):
    module = module_of(operator_named("spmm").program, Variant(dtype, features=features))
    return flat_module(module, target=target_of(bits), stats=stats)


def bsr(height, features, *, bits=512):
    sizes = {"h": height} | ({} if features is None else {"f": features})
    return flat_module(specialize(parse_module(BSR), sizes), target=target_of(bits))


def local_buffers(module):
    return [
        node.buffer
        for node in walk(module)
        if isinstance(node, Allocate) and node.buffer.scope == "local"
    ]


def moving_accesses(module):
    """The accesses of local buffers at indices that are only known at run time; these buffers stay in
    memory."""
    local = {buffer.name for buffer in local_buffers(module)}
    return [
        node
        for node in walk(module)
        if isinstance(node, (Load, Store)) and node.buffer in local
        if any(free_vars(index) for index in node.indices)
    ]


def loops_in(node):
    return [node for node in walk(*node.body) if isinstance(node, For)]


def element_loops(module):
    """The loops that accumulate: innermost loops that write local buffers."""
    local = {buffer.name for buffer in local_buffers(module)}
    return [
        loop
        for loop in walk(module)
        if isinstance(loop, For)
        and not loops_in(loop)
        and any(isinstance(node, Store) and node.buffer in local for node in walk(*loop.body))
    ]


def accumulators(module, bits):
    """For each such loop, the number of elements of local buffers that it writes, and of registers that hold
    them."""
    local = {buffer.name: buffer.dtype for buffer in local_buffers(module)}
    for loop in element_loops(module):
        stores = [node for node in walk(*loop.body) if isinstance(node, Store)]
        written = {(node.buffer, node.indices): node for node in stores if node.buffer in local}
        lanes = [DType.parse(dtype_of(node.value)).lanes for node in written.values()]
        width = DType.parse(local[stores[0].buffer]).bits
        yield sum(lanes), sum(-(-count * width // bits) for count in lanes)


CASES = [(features, bits, "float32") for features in SIZES for bits in REGISTERS]
CASES += [(features, 512, "float64") for features in SIZES]


@pytest.mark.parametrize(("features", "bits", "dtype"), CASES)
def test_a_tile_of_features_is_accumulated_in_registers(features, bits, dtype):
    module = spmm(features, bits=bits, dtype=dtype)
    buffers = list(accumulators(module, bits))
    assert buffers
    lanes = bits // DType.parse(dtype).bits
    # One vector more if vectors are aligned to the rows of the dense operand.
    more = int(features is not None and features % lanes == 0 and features > lanes)
    assert max(elements for elements, _ in buffers) <= MAX_TILE + more * lanes
    assert max(registers for _, registers in buffers) <= REGISTERS[bits] // 2 + more
    assert moving_accesses(module) == []


@pytest.mark.parametrize(("features", "bits", "dtype"), CASES)
def test_remaining_features_are_masked_and_tiles_are_few_in_code(features, bits, dtype):
    """There is no loop over single features, and the code does not grow with their number."""
    loops = element_loops(spmm(features, bits=bits, dtype=dtype))
    # A row with two sums has a loop for what the second one leaves; aligned tiles have copies without masks.
    assert 1 <= len(loops) <= 2 * MAX_TILES
    assert all(re.fullmatch(r"j(_\d)*", loop.var) for loop in loops)


@pytest.mark.parametrize(("features", "bits", "dtype"), CASES)
def test_masks_are_those_of_the_last_tile_and_of_the_ends_of_an_aligned_one(features, bits, dtype):
    loops = element_loops(spmm(features, bits=bits, dtype=dtype))
    masked = [
        loop
        for loop in loops
        if any(isinstance(node, Load) and node.predicate for node in walk(*loop.body))
    ]
    lanes = bits // DType.parse(dtype).bits
    is_aligned = features is not None and features % lanes == 0 and features > lanes
    # An aligned tile may have two sums, and a loop for what the second one leaves.
    assert len(masked) <= 1 + 2 * is_aligned
    is_one_loop = len(loops) == 1 and bool(masked)
    assert is_aligned or features is None or not is_one_loop or features <= MAX_TILE
    for loop in masked if is_aligned else ():
        loads = [node for node in walk(*loop.body) if isinstance(node, Load) and node.predicate]
        assert len({load.indices for load in loads}) <= 2


@pytest.mark.parametrize("bits", REGISTERS)
def test_the_size_of_code_is_bounded(bits):
    sizes = {features: sum(1 for _ in walk(spmm(features, bits=bits))) for features in SIZES}
    most = REGISTERS[bits] // 2 * MAX_TILES
    assert max(sizes.values()) <= 100 * most + 500, sizes


ROWS_PREFETCHED = {
    (31, 1_000_000): False,
    (33, 1_000_000): True,
    (64, 1_000_000): True,
    (127, 1_000_000): True,
    (128, 1): False,
    (128, 4096): False,
    (128, 4097): False,
    (128, 1_000_000): True,
    (200, 2621): False,
    (200, 2622): False,
    (200, 4096): True,
    (200, 1_000_000): True,
    (512, 1025): False,
    (512, 4096): False,
    (512, 1_000_000): True,
}
"""By features and columns: rows of a dense operand of 2 MiB or more, from 128 bytes each. An operand of up to
8 MiB is read by aligned vectors instead if its rows are whole cache lines."""


@pytest.mark.parametrize(("features", "columns"), ROWS_PREFETCHED)
def test_rows_are_prefetched_where_they_are_long_and_far(features, columns):
    stats = Stats(rows=1000, columns=columns, nnz=5000, longest_row=9, empty_rows=0)
    prefetches = collect(Prefetch, spmm(features, stats=stats))
    assert bool(prefetches) == ROWS_PREFETCHED[features, columns]


@pytest.mark.parametrize("features", SIZES)
def test_nothing_is_prefetched_without_stats(features):
    assert not any(isinstance(node, Prefetch) for node in walk(spmm(features)))


HEIGHTS = [1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 32, 64]


@pytest.mark.parametrize("bits", REGISTERS)
@pytest.mark.parametrize("height", HEIGHTS)
@pytest.mark.parametrize("features", [1, 8, 33, 64, 500, None])
def test_a_tile_of_a_block_row_is_accumulated_in_registers(height, features, bits):
    module = bsr(height, features, bits=bits)
    buffers = list(accumulators(module, bits))
    assert buffers
    assert max(registers for _, registers in buffers) <= REGISTERS[bits] * 3 // 4
    assert moving_accesses(module) == []
