"""An operator with operands and an output array, as the command line runs and times it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gossamer.cli.comparison.accuracy import Comparison, compare_with_baseline
from gossamer.cli.comparison.baselines import baseline_of
from gossamer.compilation.pipeline import schedule_for_target, stage_texts
from gossamer.operator_calls.operands.checked_operands import has_one_kernel, kernel_spec
from gossamer.operator_calls.operator_kernels import kernel_for
from gossamer.operator_calls.operator_program import module_of
from gossamer.operators import operator_named
from gossamer.targets.parse_target import DEFAULT_TARGET
from gossamer.targets.resolve_target import resolve_target
from gossamer_formats import Array, SparseTensor, to_scipy
from gossamer_ir.interchange.records import Schedule
from gossamer_ir.nodes import Module


class OperatorRun:
    """`run` calls the public API and returns the result; `baseline` returns that of the baseline."""

    def __init__(
        self, op: str, tensor: SparseTensor, *, dense: tuple[Array, ...], target: str
    ) -> None:
        operator = operator_named(op)
        operands = operator.checked_operands(tensor, *dense, target=target)
        assert has_one_kernel(operands)
        self.op, self.tensor, self.dense, self.features = op, tensor, dense, operands.features
        self.out: Array = np.empty(operands.shape, dtype=operands.dtype)
        self.compile_ms, self.is_cached = 0.0, False
        self.emulator: str | None = None
        self.baseline = baseline_of(op).prepare(to_scipy(tensor), *dense)
        self._operator, self._target = operator, target
        self._spec = kernel_spec(operands, operator.program)
        if self.out.size and tensor.nnz:
            built = kernel_for(self._spec, target=target)
            self.compile_ms, self.is_cached = built.compile_ms, built.is_cached
            self.emulator = built.kernel.emulator

    def run(self) -> Array:
        """Run the operator, which writes to the output array."""
        return self._operator(self.tensor, *self.dense, out=self.out, target=self._target)

    def check(self) -> Comparison:
        """Run the operator and compare its result with that of the baseline."""
        return compare_with_baseline(self.op, self.tensor, self.dense, self.run())

    def schedule(self) -> Schedule:
        """Return the schedule that the rules choose."""
        return schedule_for_target(
            self._module(), resolve_target(self._target)[1], self.tensor.stats
        )

    def stage_texts(self) -> Mapping[str, str]:
        """Return the text of the kernel at each stage."""
        return stage_texts(self._module(), target=self._target, stats=self.tensor.stats)

    def _module(self) -> Module:
        program, variant, _, stored_format = self._spec
        return module_of(program, variant, stored_format)


def operator_run(
    op: str, tensor: SparseTensor, *, features: int, target: str = DEFAULT_TARGET
) -> OperatorRun:
    """Return an operator with normally distributed operands, which depend only on the sizes; its kernel is
    built. `features` is the width of dense matrices; operators on vectors have none of it."""
    random = np.random.default_rng(0)
    dtype: Any = np.float32 if tensor.dtype == "float32" else np.float64
    shapes = baseline_of(op).operand_shapes(tensor.shape, features)
    dense = tuple(random.standard_normal(shape, dtype=dtype) for shape in shapes)
    return OperatorRun(op, tensor, dense=dense, target=target)
