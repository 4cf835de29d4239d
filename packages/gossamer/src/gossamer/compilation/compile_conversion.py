"""Compiles the programs of conversions, which `gossamer_formats` writes at the loop stage."""

from __future__ import annotations

from functools import cache, partial

from gossamer.compilation.build_kernels import KERNELS
from gossamer.targets.parse_target import DEFAULT_TARGET
from gossamer.targets.resolve_target import machine_for
from gossamer_backend import Kernel
from gossamer_ir.interchange.serialization import dumps
from gossamer_ir.nodes import Module
from gossamer_machine import Machine


def compile_conversion(module: Module) -> Kernel:
    """Return the kernel of a conversion's program, whose outermost loops run on all threads where it is
    proved that no two iterations access one element. Loops that count indices are unrolled.

    The schedule is computed only if no cache has the kernel. Raises as `gossamer.compile` does.
    """
    return KERNELS.build_program(b"conversion " + dumps(module), partial(_schedule, module)).kernel


@cache
def conversion_machine() -> Machine:
    """Return the machine that runs the kernels of conversions.

    >>> conversion_machine().lanes("float32") > 0
    True
    """
    return machine_for(DEFAULT_TARGET)


def _schedule(module: Module) -> Module:
    from gossamer_ir.verify import verify
    from gossamer_schedule.internal_api import parallel_outer_loops, unroll_counting_loops

    return unroll_counting_loops(parallel_outer_loops(verify(module)))
