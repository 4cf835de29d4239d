"""Copies fibers that a kernel has listed in any order, one after the other in the order of the axis."""

from __future__ import annotations

import numpy as np

from gossamer_formats.conversion.by_kernels.kernels.kernel_call import ArrayArgument, run_kernel
from gossamer_formats.conversion.by_kernels.kernels.statements import (
    let,
    load,
    loop,
    offsets_facts,
    store,
)
from gossamer_formats.conversion.by_kernels.recording.array_scalars import size_of
from gossamer_formats.conversion.by_kernels.recording.branch import RecordedValue
from gossamer_formats.conversion.by_kernels.recording.recorder import Recorder
from gossamer_ir.core.build import ONE, ZERO, add, index_var, sub
from gossamer_ir.nodes import Stmt

DTYPE = "int32"
"""The dtype of coordinates and slots."""


def gather_fibers(
    recorder: Recorder,
    listed: tuple[RecordedValue, RecordedValue],
    begins: RecordedValue,
    offsets: RecordedValue,
) -> RecordedValue:
    """Return coordinates in the order of their fibers.

    `listed`: the coordinates and how many there are; `begins`: the slot of the first one of each fiber among
    them; `offsets`: the first slots of fibers in order. All are of int32.
    """
    array, count = listed
    fibers, total = index_var("fibers"), index_var("count")
    gathered = recorder.compute(np.empty, count, DTYPE)
    facts = offsets_facts("OFFSETS", fibers, total)
    arguments = {
        "fibers": recorder.compute(size_of, begins),
        "count": count,
        "LISTED": ArrayArgument(array, DTYPE, (total,)),
        "BEGINS": ArrayArgument(begins, DTYPE, (fibers,)),
        "OFFSETS": ArrayArgument(offsets, DTYPE, (add(fibers, ONE),), facts),
        "FOUND": ArrayArgument(gathered, DTYPE, (total,)),
    }
    run_kernel(recorder, _copies(), arguments)
    return gathered


def _copies() -> list[Stmt]:
    """Return the kernel."""
    fiber, slot, first, begin = (index_var(name) for name in ("g", "s", "first", "begin"))
    end = load("OFFSETS", add(fiber, ONE), DTYPE)
    copied = load("LISTED", add(begin, sub(slot, first)), DTYPE)
    body: list[Stmt] = [
        let(first.name, load("OFFSETS", fiber, DTYPE)),
        let(begin.name, load("BEGINS", fiber, DTYPE)),
        loop(slot.name, first, end, [store("FOUND", slot, copied, DTYPE)]),
    ]
    return [loop(fiber.name, ZERO, index_var("fibers"), body)]
