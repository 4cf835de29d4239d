"""The operators, scheduled by the default rules and unscheduled."""

from __future__ import annotations

from collections.abc import Iterator

from gossamer.compilation.pipeline import lower_by_stage
from gossamer.operator_calls.operator_program import Variant, module_of
from gossamer.operators import operator_named
from gossamer_ir.interchange.records import Schedule
from gossamer_ir.nodes import Module
from gossamer_machine import Machine
from gossamer_schedule.rules import default_schedule
from tools.corpus_programs.program_source import CorpusProgram

MACHINE = Machine()
"""A fixed machine, so that the corpus does not depend on the one that generates it."""

SPMM = (
    ("float32", "int32", 33),
    ("float32", "int64", None),
    ("float64", "int32", 8),
    ("float64", "int64", 5),
    ("float32", "int32", 64),
)
SPMV = (("float32", "int32"), ("float32", "int64"), ("float64", "int32"), ("float64", "int64"))
SYMBOLIC = [0, 1, 17]


def sources() -> Iterator[CorpusProgram]:
    """Yield the sources of these programs."""
    for dtype, index_dtype, features in SPMM:
        yield _spmm(dtype, index_dtype, features, is_scheduled=True)
    for dtype, index_dtype in SPMV:
        yield _spmv(dtype, index_dtype, is_scheduled=True)
    yield _spmm("float32", "int32", 3, is_scheduled=False)
    yield _spmv("float64", "int32", is_scheduled=False)


def _spmm(
    dtype: str, index_dtype: str, features: int | None, *, is_scheduled: bool
) -> CorpusProgram:
    module = _flat(
        "spmm", Variant(dtype, index_dtype, index_dtype, features), is_scheduled=is_scheduled
    )
    width = "symbolic" if features is None else f"{features}"
    suffix = width if is_scheduled else "as_written"
    return CorpusProgram(
        f"spmm_{dtype}_{index_dtype}_{suffix}",
        f"CSR times dense, {width} features, {_how(is_scheduled=is_scheduled)}.",
        module,
        "spmm_cases",
        "csrmm",
        {
            "dtype": dtype,
            "index_dtype": index_dtype,
            "features": SYMBOLIC if features is None else [features],
            "symbolic": features is None,
        },
    )


def _spmv(dtype: str, index_dtype: str, *, is_scheduled: bool) -> CorpusProgram:
    module = _flat("spmv", Variant(dtype, index_dtype, index_dtype), is_scheduled=is_scheduled)
    suffix = "" if is_scheduled else "_as_written"
    return CorpusProgram(
        f"spmv_{dtype}_{index_dtype}{suffix}",
        f"CSR times a vector, {_how(is_scheduled=is_scheduled)}.",
        module,
        "spmv_cases",
        "csrmv",
        {"dtype": dtype, "index_dtype": index_dtype},
    )


def _flat(operator: str, variant: Variant, *, is_scheduled: bool) -> Module:
    module = module_of(operator_named(operator).program, variant)
    return schedule_flat(module) if is_scheduled else list(lower_by_stage(module, Schedule()))[-1]


def schedule_flat(module: Module) -> Module:
    """Return the flat stage of a coordinate module, scheduled by the default rules."""
    *_, flat = lower_by_stage(module, default_schedule(module, MACHINE))
    return flat


def _how(*, is_scheduled: bool) -> str:
    return "as the default rules schedule it" if is_scheduled else "as it is written"
