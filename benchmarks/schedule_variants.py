"""Contenders of gossamer with different schedules, for tuning.

A file for `--variants` may look like this:

    from benchmarks.schedule_variants import with_rule
    from gossamer_schedule.rules import default_schedule

    VARIANTS = {"default": with_rule(default_schedule)}
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeAlias

import gossamer
from benchmarks.contenders.contender import Prepare, Prepared, UnavailableError
from benchmarks.operator_case import OperatorCase
from gossamer.compilation.build_kernels import KERNELS
from gossamer.operator_calls.operands.checked_operands import (
    has_one_kernel,
    kernel_arguments,
    kernel_spec,
)
from gossamer.operator_calls.operator_program import module_of
from gossamer.operators import NAMES, operator_named
from gossamer.targets.resolve_target import machine_for
from gossamer_formats import from_scipy
from gossamer_ir.interchange.records import Schedule, Stats, Target
from gossamer_ir.nodes import Module
from gossamer_machine import Machine

TARGET = Target("generic-cpu")
VariantRule: TypeAlias = Callable[[Module, Machine, Stats | None], Schedule]


def load_variants(path: Path) -> Mapping[str, Prepare]:
    """Return `VARIANTS` of a Python file: contenders by name."""
    spec = importlib.util.spec_from_file_location("benchmark_variants", path)
    if spec is None or spec.loader is None:
        raise UnavailableError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    variants: Mapping[str, Prepare] = module.VARIANTS
    return variants


def with_rule(rule: VariantRule) -> Prepare:
    """Prepare the operator's program with the schedule that `rule` returns for module and matrix."""
    return partial(prepare_with_rule, rule=rule)


def prepare_with_rule(case: OperatorCase, threads: int, *, rule: VariantRule) -> Prepared:
    """Prepare a bound kernel of an operator, so that no checks of arguments are timed."""
    if case.op not in NAMES:
        raise UnavailableError(f"gossamer has no operator {case.op}")
    operator = operator_named(case.op)
    operands = operator.checked_operands(from_scipy(case.csr), *case.operands)
    assert has_one_kernel(operands), "a tensor is in CSR"
    program, variant, stats, stored_format = kernel_spec(operands, operator.program)
    module = module_of(program, variant, stored_format)
    schedule = rule(module, machine_for(TARGET), stats)
    kernel = KERNELS.build_module(module, target=TARGET, schedule=schedule).kernel
    arguments = kernel_arguments(operands, program, case.out)
    bound = kernel.bind(verified=operands.matrix.verified, **arguments)
    return Prepared(bound, partial(gossamer.set_num_threads, threads))
