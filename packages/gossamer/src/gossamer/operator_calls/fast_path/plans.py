"""Plans of repeated calls: kernels that are called with operands in their usual form."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import msgspec

from gossamer.bounded_dict import put_bounded
from gossamer.operator_calls.kernels import KernelRequest, kernel_for
from gossamer.operator_calls.operands.checked_operands import CheckedOperands
from gossamer.operator_calls.portions import is_much_work
from gossamer_backend import CallPlan, Kernel
from gossamer_backend.call.plan import FixedArguments
from gossamer_formats import Array
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target

MAX_PLANS = 1024
"""The number of plans that an operator keeps; the first is dropped."""

MIN_FUSED_CHECK = 131_072
"""The number of nonzeros from which a kernel checks index arrays itself, block by block. Fewer are still in
the caches when the kernel reads them after the check, and do not pay for another kernel. Measured above this
size on two threads: the fused check takes 1 to 20% of a call (mean 8%), a separate check 2 to 25% (mean
12%)."""


class PlanPair(NamedTuple):
    """The plan for arrays that were checked, and a function that returns the one whose kernel checks index
    arrays itself, or None if no kernel can."""

    plan: CallPlan
    checking: Callable[[], CallPlan | None]

    def run(
        self, arguments: FixedArguments, dense: tuple[Any, ...], out: Array | None
    ) -> Array | None:
        """Return the result by one of the plans; None if it refuses the arrays."""
        plan = self.plan
        if len(dense) != plan.inputs:
            return None
        # An output that was passed must stay as it is if an index is wrong, so all indices are checked
        # before the kernel runs.
        is_fused = (
            arguments.check is not None and out is None and arguments.scalars[-1] >= MIN_FUSED_CHECK
        )
        checking = self.checking() if is_fused else None
        if checking is None:
            return plan.run(arguments, *dense, out)
        try:
            return checking.run(arguments._replace(check=None), *dense, None)
        except ArgumentError as error:
            if error.code != "kernel.out_of_bounds":
                raise
            return None


class Plans:
    """The plans of an operator's earlier calls, `by_key`: the key of the matrix, the target, and the sizes of
    the first dense operand after the first one."""

    def __init__(self) -> None:
        self.by_key: dict[tuple[object, str | Target | None, tuple[int, ...]], PlanPair] = {}

    def keep(
        self,
        operands: CheckedOperands,
        request: KernelRequest,
        kernel: Kernel,
        *,
        target: str | Target | None,
    ) -> None:
        """Keep a plan of the kernel of a request for later calls with such operands."""
        matrix = operands.plan_key
        # Long calls run in portions, so the microseconds that a plan saves do not matter.
        if matrix is None or is_much_work(operands.products):
            return
        (first, *_) = operands.dense.values()
        key = (matrix, target, first.shape[1:])
        stored = self.by_key.get(key)
        # The kernel changes with the stats of the matrix.
        if stored is not None and stored.plan.kernel is kernel:
            return
        passed = (*operands.dense, operands.output)
        plan = partial(_plan, structure=operands.structure, passed=passed)
        checking = partial(_checking_plan, request, plan, target=target)
        pair = PlanPair(plan(kernel), cache(checking))
        put_bounded(self.by_key, key, pair, limit=MAX_PLANS)


def _checking_plan(
    request: KernelRequest, plan: Callable[[Kernel], CallPlan], *, target: str | Target | None
) -> CallPlan | None:
    """Return the plan of a kernel that checks the index arrays; None if that is left to callers."""
    variant = msgspec.structs.replace(request.variant, checks=True)
    kernel = kernel_for(request._replace(variant=variant), target=target).kernel
    if any(param.facts for param in kernel.signature.buffers):
        return None
    return plan(kernel)


def _plan(
    kernel: Kernel,
    *,
    structure: tuple[tuple[str, ...], tuple[str, ...]],
    passed: tuple[str, ...],
) -> CallPlan:
    """Return the plan of a kernel that is called with the structure of a matrix and the `passed` arrays."""
    pointers, scalars = structure
    return kernel.plan(pointers=pointers, scalars=scalars, passed=passed)
