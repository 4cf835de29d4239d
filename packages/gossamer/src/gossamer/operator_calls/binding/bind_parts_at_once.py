"""Calls with a matrix in parts on a machine that runs grids of threads: one kernel computes all parts.

A launch takes several microseconds, and a part of a small matrix does not fill a GPU. So the kernel is
compiled for these parts: another matrix shares it if it has the same ones.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from gossamer.compilation.build_kernels import KERNELS
from gossamer.operator_calls.operands.checked_operands import Operands
from gossamer.operator_calls.operands.matrix_in_parts import MatrixInParts
from gossamer.operator_calls.operator_program import OperatorProgram, Variant, module_of
from gossamer.targets.resolve_target import machine_for
from gossamer_backend import BoundCall
from gossamer_formats import Array, Decomposition
from gossamer_formats.internal_api import MemoKey, SparsityPattern
from gossamer_ir import dumps
from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import Module


class _IdentifiedProgram(NamedTuple):
    """A program for all parts, and what identifies it."""

    identity: Hashable
    module: Module


_PROGRAMS = MemoKey[dict[Hashable, _IdentifiedProgram]](
    "the programs that compute all parts at once"
)


def is_computed_at_once(
    program: OperatorProgram, operands: Operands[MatrixInParts], target: str | Target | None
) -> bool:
    """Return whether one launch computes the parts: they are summed, or added to the result, and the machine
    of a target runs grids of threads."""
    has_parts = bool(operands.matrix.decomposition.parts)
    if target is None or not has_parts or not program.sums_rows:
        return False
    return machine_for(target).grid is not None


def bind_parts_at_once(
    program: OperatorProgram,
    operands: Operands[MatrixInParts],
    result: Array,
    *,
    target: str | Target,
    check: bool,
) -> BoundCall:
    """Return the kernel of all parts bound to arrays."""
    decomposition = operands.matrix.decomposition
    variant = Variant(operands.dtype, features=operands.features)
    program_of_parts = _program(decomposition, program, variant)
    kernel = KERNELS.build_program(
        program_of_parts.identity, lambda: program_of_parts.module, target=target
    ).kernel
    arguments = decomposition.arguments
    # The facts that the program states about them were true when the parts were made.
    verified = tuple(name for name, value in arguments.items() if isinstance(value, np.ndarray))
    values: dict[str, Any] = {**arguments, **operands.dense, operands.output: result}
    return kernel.bind(verified=verified, check=check, **values)


def _program(
    decomposition: Decomposition, program: OperatorProgram, variant: Variant
) -> _IdentifiedProgram:
    programs, key = _PROGRAMS.get(decomposition.pattern, _no_programs), (program, variant)
    if key not in programs:
        module = decomposition.rewrite(module_of(program, variant), at_once=True)
        # The rows that parts have in common are in the program, so that its text identifies it.
        programs[key] = _IdentifiedProgram((program, variant, dumps(module).decode()), module)
    return programs[key]


def _no_programs(_pattern: SparsityPattern) -> dict[Hashable, _IdentifiedProgram]:
    return {}
