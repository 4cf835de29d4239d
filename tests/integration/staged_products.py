"""Schedules that stage the operands of products in the shared memory of blocks."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_lower import lower_buffers, lower_iterations
from gossamer_schedule.builder import ScheduleBuilder
from gossamer_testkit.bsr_product import bsr_product

ROWS, COLUMNS, DEPTH = 32, 16, 24
_MATMUL = f"""
@T.prim_func
def matmul(a: T.handle, b: T.handle, c: T.handle) -> None:
    T.func_attr({{"sparse_tir_level": 0}})
    A = T.match_buffer(a, ({ROWS}, {DEPTH}), "float32")
    B = T.match_buffer(b, ({DEPTH}, {COLUMNS}), "float32")
    C = T.match_buffer(c, ({ROWS}, {COLUMNS}), "float32")
    for i in T.serial({ROWS}):
        for j in T.serial({COLUMNS}):
            for p in T.serial({DEPTH}):
                with T.block("matmul"):
                    vi, vj, vp = T.axis.remap("SSR", [i, j, p])
                    with T.init():
                        C[vi, vj] = 0.0
                    C[vi, vj] = C[vi, vj] + A[vi, vp] * B[vp, vj]
"""


def distribute(schedule: ScheduleBuilder, loops: Sequence[str], threads: int) -> None:
    """Distribute the iterations of a nest over the threads of a block."""
    fused = schedule.fuse(loops=tuple(loops)).names[0]
    schedule.bind(schedule.split(fused, factors=(None, threads)).names[1], thread="threadIdx.x")


def tiled_matmul() -> ScheduleBuilder:
    """A dense product in tiles of 16 by 16 sums, and 8 terms of each."""
    schedule = ScheduleBuilder(parse_module(_MATMUL))
    for loop, size in (("i", 16), ("j", 16), ("p", 8)):
        schedule.split(loop, factors=(None, size))
    return schedule.reorder(loops=("i_0", "j_0", "p_0", "i_1", "j_1", "p_1"))


def staged_matmul(*, threads: int = 96, stages: int = 1) -> ScheduleBuilder:
    """A dense product: a block of threads has a tile of sums, and stages 8 columns of A and 8 rows of B at a
    time, in a pipeline if there are several stages."""
    schedule = tiled_matmul()
    copies = [
        schedule.cache_read("matmul", buffer=buffer, scope="shared").names[1] for buffer in "AB"
    ]
    schedule.decompose_reduction("matmul", loop="p_0")
    for copy in copies:
        schedule.compute_at(copy, loop="p_0")
    if stages > 1:
        schedule.pipeline("p_0", stages=stages)
    schedule.bind("i_0", thread="blockIdx.y").bind("j_0", thread="blockIdx.x")
    for block in (*copies, "matmul_init"):
        distribute(schedule, schedule.get_loops(block)[-2:], threads)
    distribute(schedule, ("i_1", "j_1"), threads)
    return schedule


def staged_bsr(
    height: int, width: int, features: int, *, threads: int = 64, stages: int = 1
) -> ScheduleBuilder:
    """BSR times dense: a block of threads has a block row, and stages a block and the rows that it needs, in
    a pipeline if there are several stages."""
    sizes = {"bh": height, "bw": width, "feat": features}
    module = lower_buffers(lower_iterations(specialize(bsr_product(), sizes)))
    schedule = ScheduleBuilder(module)
    schedule.reorder(loops=("io", "jo", "ii", "k", "ji"))
    copies = [
        schedule.reindex_cache_read("bsrmm", buffer=buffer, scope="shared").names[1]
        for buffer in ("A_data", "B_data")
    ]
    schedule.decompose_reduction("bsrmm", loop="jo")
    for copy in copies:
        schedule.compute_at(copy, loop="jo")
    if stages > 1:
        schedule.pipeline("jo", stages=stages)
    schedule.bind("io", thread="blockIdx.x")
    for block in (*copies, "bsrmm_init"):
        distribute(schedule, schedule.get_loops(block)[-2:], threads)
    distribute(schedule, ("ii", "k"), threads)
    return schedule
