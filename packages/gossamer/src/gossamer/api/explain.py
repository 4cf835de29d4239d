"""`explain`: the schedule of a program, or the format of a matrix, with reasons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import overload

from gossamer.api.compile import ProgramSource, specialized_module
from gossamer.api.prepare import choice_of
from gossamer.compilation.pipeline import report_for_target
from gossamer.operator_calls.operator_program import (
    OperatorProgram,
    Variant,
    module_of,
    program_for,
)
from gossamer.operator_calls.prepared_formats.chosen_format import PreparedMatrix
from gossamer.operators import is_operator_name, operator_named
from gossamer.targets.parse_target import DEFAULT_TARGET
from gossamer.targets.resolve_target import resolve_elsewhere
from gossamer_formats import Decomposition, SparseTensor
from gossamer_ir.core.dtypes import SUM_DTYPES
from gossamer_ir.interchange.records import ScheduleReport, Stats, Target
from gossamer_ir.nodes import Module
from gossamer_machine.intrinsics.n_m_operands import n_m_operands
from gossamer_tune import FormatChoice


@overload
def explain(program: PreparedMatrix) -> FormatChoice: ...


@overload
def explain(
    program: ProgramSource,
    *,
    target: str | Target = DEFAULT_TARGET,
    stats: Stats | None = None,
    specialize: Mapping[str, int] | None = None,
    dtypes: Mapping[str, str] | None = None,
) -> ScheduleReport: ...


def explain(
    program: ProgramSource | PreparedMatrix,
    *,
    target: str | Target = DEFAULT_TARGET,
    stats: Stats | None = None,
    specialize: Mapping[str, int] | None = None,
    dtypes: Mapping[str, str] | None = None,
) -> ScheduleReport | FormatChoice:
    """Return the schedule that the rules choose for a program, with reasons: the rule, the pattern that it
    matched, and each decision with its reason and its steps.

    The program, `specialize`, `dtypes` and the target are as for `compile`; an operator can be given by name.
    `stats` are those of the matrix, as in `SparseTensor.stats`; rules, and so the reasons, use those of its
    class (`Stats.representative`). `schedule` of the result is the same schedule
    that a compile with these arguments uses. `choices` are those that the rule has made, each with the values
    that it could have; `schedule_space` returns the other schedules.
    For a matrix that `prepare` has returned, or a tensor with which enough products were computed, the result
    is its `FormatChoice`: the expected cost of each format.
    Raises `ParseError`, `VerifyError`, `PluginError`, and `ArgumentError` for an unknown target, or for a
    matrix that was not prepared.

    >>> import gossamer as gs
    >>> report = gs.explain("spmm", target="generic-cpu:vector_bits=512", specialize={"feat_size": 40})
    >>> print(report.rule)
    row_spmm
    >>> tiles = report.decisions[1]
    >>> print(tiles.what)
    features in 1 tile of 3 vectors of 16 lanes
    >>> [step.op for step in tiles.steps], tiles.steps[0] == report.schedule.loop[0]
    (['split'], True)
    """
    if isinstance(program, (SparseTensor, Decomposition)):
        return choice_of(program)
    module = program_of(program, specialize=specialize, dtypes=dtypes)
    report = report_for_target(module, resolve_elsewhere(target)[1], stats)
    if is_operator_name(program):
        operator = operator_named(str(program))
        dtype = _operand_dtype(operator.program, dtypes or {}) or Variant().dtype
        return operator.explain_calls(report, dtype=dtype, sizes=specialize or {}, target=target)
    return report


def program_of(
    program: ProgramSource,
    *,
    specialize: Mapping[str, int] | None,
    dtypes: Mapping[str, str] | None,
) -> Module:
    """Return the module of a program in any form, or of an operator that is given by name, with these
    parameters fixed and these buffers and axes retyped. The dtype of the first operand of an operator is that
    of all its operands, and the dtype of its sums follows from it."""
    if is_operator_name(program):
        named = operator_named(str(program)).program
        dtype = _operand_dtype(named, dtypes or {})
        if dtype is None:
            program = named.script
        else:
            stored = n_m_operands(dtype).stored_as
            program = module_of(program_for(named, dtype), Variant(stored))
            dtypes = {
                name: stored if asked == dtype else asked for name, asked in (dtypes or {}).items()
            }
    return specialized_module(program, specialize=specialize, dtypes=dtypes)


def _operand_dtype(program: OperatorProgram, dtypes: Mapping[str, str]) -> str | None:
    """Return the dtype of an operator's operands; None if it is that of the script, or one that operands do
    not have, which is refused later."""
    dtype = dtypes.get(program.buffers[0])
    return dtype if dtype in SUM_DTYPES or dtype in dict(program.special or ()) else None
