"""Schedules in scalable vectors, by hand, whose instructions are counted.

Features are in vectors of several registers, which hold the results of a row while its nonzeros are added.
"""

from __future__ import annotations

from gossamer.operators import sddmm, spmm, spmv
from gossamer_ir.script import parse_module
from gossamer_lower import lower_buffers, lower_iterations
from gossamer_schedule import ScheduleBuilder, get_loops
from gossamer_testkit import script

ONE_REGISTER = "4 * T.vscale()"
"""Lanes of float32 in one register."""
FOUR_REGISTERS = "16 * T.vscale()"


def _loops(text: str) -> ScheduleBuilder:
    return ScheduleBuilder(lower_buffers(lower_iterations(parse_module(text))))


def _in_registers(
    builder: ScheduleBuilder, block_name: str, *, buffer_name: str, tile: str, reduction: str
) -> tuple[str, str]:
    """Keep the results of an iteration of the loop `tile` in registers, and return the blocks that
    initialize and store them."""
    builder.cache_write(block_name, buffer=buffer_name, scope="local")
    copy = f"{block_name}_{buffer_name}_local"
    builder.reverse_compute_at(copy, loop=tile).decompose_reduction(block_name, loop=reduction)
    return f"{block_name}_init", copy


def _vectorize_innermost(builder: ScheduleBuilder, *blocks: str) -> None:
    for block in blocks:
        builder.vectorize(get_loops(builder.module, block)[-1])


def spmv_schedule() -> ScheduleBuilder:
    """Return SpMV with the nonzeros of a row in lanes."""
    builder = _loops(spmv.SCRIPT)
    _in_registers(builder, "csrmv", buffer_name="Y_data", tile="i", reduction="j")
    return builder.vectorize("j", lanes=ONE_REGISTER, rest="masked")


def spmm_schedule() -> ScheduleBuilder:
    """Return SpMM over CSR with features in lanes."""
    builder = _loops(spmm.SCRIPT)
    builder.split("k", factors=(None, FOUR_REGISTERS)).reorder("i", "k_0", "j", "k_1")
    others = _in_registers(builder, "csrmm", buffer_name="C_data", tile="k_0", reduction="j")
    _vectorize_innermost(builder, "csrmm", *others)
    return builder


def sddmm_schedule() -> ScheduleBuilder:
    """Return SDDMM with features in lanes, which are combined for each nonzero."""
    builder = _loops(sddmm.SCRIPT)
    _in_registers(builder, "sddmm", buffer_name="Out_data", tile="j", reduction="k")
    return builder.vectorize("k", lanes=FOUR_REGISTERS, rest="masked")


def bsr_spmm_schedule() -> ScheduleBuilder:
    """Return SpMM over BSR with features in lanes."""
    builder = _loops(script("bsr_spmm"))
    builder.split("f", factors=(None, FOUR_REGISTERS)).reorder("i", "bi", "f_0", "j", "bj", "f_1")
    others = _in_registers(builder, "bsrmm", buffer_name="C_data", tile="f_0", reduction="j")
    _vectorize_innermost(builder, "bsrmm", *others)
    return builder
