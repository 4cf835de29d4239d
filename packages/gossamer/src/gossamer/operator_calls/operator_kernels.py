"""Kernels of the operators."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from gossamer.compilation.build_kernels import KERNELS
from gossamer.operator_calls.operator_program import (
    OperatorProgram,
    StoredFormat,
    Variant,
    module_of,
)
from gossamer_ir.interchange.records import Stats, Target

if TYPE_CHECKING:
    from gossamer.compilation.build_kernels import BuiltKernel


class KernelSpec(NamedTuple):
    """The program and the variant of a kernel, for a matrix in CSR or in another format. The rules choose its
    schedule by the class of the stats."""

    program: OperatorProgram
    variant: Variant
    stats: Stats | None = None
    stored_format: StoredFormat | None = None


def kernel_for(spec: KernelSpec, *, target: str | Target | None = None) -> BuiltKernel:
    """Return the kernel of an operator, with the schedule that rules choose."""
    program, variant, stats, stored_format = spec
    make_module = partial(module_of, program, variant, stored_format)
    return KERNELS.build_program(
        (program, variant, stored_format), make_module, target=target, stats=stats
    )
