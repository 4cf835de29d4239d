"""Plans of repeated calls: kernels that are called with operands in their usual form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace
from numpy import ndarray

from gossamer.operator_calls.fast_path.plan_arguments import (
    MatrixArguments,
    converted_arguments,
    matrix_arguments,
)
from gossamer.operator_calls.fast_path.repeated_products import CallHistory, CountedCall
from gossamer.operator_calls.operands.checked_operands import Operands
from gossamer.operator_calls.operands.matrix_in_parts import MatrixInParts, is_decomposition
from gossamer.operator_calls.operands.matrix_operand import KernelMatrix
from gossamer.operator_calls.operator_kernels import KernelSpec, kernel_for
from gossamer.operator_calls.operator_program import StructureParameters
from gossamer.operator_calls.row_ranges import is_made_in_ranges
from gossamer_backend import BoundCall, CallPlan, Kernel, NativeCall
from gossamer_formats import Array, SparseTensor
from gossamer_formats.internal_api import MemoKey
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target
from gossamer_support.bounded_dict import put_bounded

if TYPE_CHECKING:
    from gossamer_backend import JointPlan
    from gossamer_formats import Decomposition

MAX_PLANS = 1024
"""The number of plans that an operator keeps; the first is dropped."""

MAX_JOINT_PLANS = 64
"""The number of plans that a matrix in parts keeps for an operator: one for each target and number of
columns."""

MIN_FUSED_CHECK = 131_072
"""The number of nonzeros from which a kernel checks index arrays itself, block by block. Fewer are still in
the caches when the kernel reads them after the check, and do not pay for another kernel. Measured above this
size on two threads: the fused check takes 1 to 20% of a call (mean 8%), a separate check 2 to 25% (mean
12%)."""

MAX_REPEATED_CALLS = 64
"""The number of numbers of columns whose last call with an operator a tensor keeps."""


class PlanPair(msgspec.Struct, frozen=True):
    """The plan for arrays that were checked, and a function that returns the one whose kernel checks index
    arrays itself, or None if no kernel can."""

    plan: CallPlan
    make_checking: Callable[[], CallPlan | None]

    def run(
        self, arguments: MatrixArguments, dense: tuple[Any, ...], out: Array | None
    ) -> Array | None:
        """Return the result by one of the plans; None if it refuses the arrays."""
        fixed = arguments.fixed
        # An output that was passed must stay as it is if an index is wrong, so all indices are checked
        # before the kernel runs.
        is_fused = fixed.check is not None and out is None and arguments.nnz >= MIN_FUSED_CHECK
        checking = self.make_checking() if is_fused else None
        if checking is None:
            return self.plan.run(fixed, dense, out)
        try:
            return checking.run(fixed._replace(check=None), dense, None)
        except ArgumentError as error:
            if error.code != "kernel.out_of_bounds":
                raise
            return None


class RepeatedCall(NamedTuple):
    """The last call of an operator with a tensor and some number of columns: its count, the call before
    which the format is considered again, its plan for the arguments of the matrix, and these, which keep its
    arrays. Calls with the same tensor find all of it in one step."""

    history: CallHistory
    next_action_call: int
    run: Callable[..., Array | None]
    arguments: MatrixArguments


_LastCalls: TypeAlias = dict[tuple[int, ...], RepeatedCall]
"""The last call with a tensor for the sizes of the first dense operand after the first one."""


def _no_calls(_tensor: SparseTensor) -> _LastCalls:
    return {}


_JointPlans: TypeAlias = "dict[tuple[str | Target | None, tuple[int, ...]], JointPlan]"
"""The plans for a matrix in parts, by the target and the same sizes."""


def _no_plans(_matrix: Decomposition) -> _JointPlans:
    return {}


Adapt: TypeAlias = Callable[..., tuple[Any, ...]]
"""Returns dense operands of a call as arrays for the kernel; none if kernels do not take them."""


class Plans:
    """The plans of an operator's earlier calls. The key of a plan is that of the matrix, the target, and the
    sizes of the first dense operand after the first one.

    A plan for a matrix in one format fits all matrices with the same key. A plan for a matrix in parts
    contains the arrays of the matrix. So the matrix keeps it, and it ends with the matrix.
    """

    def __init__(self, *, adapt: Adapt | None = None) -> None:
        self.by_key: dict[tuple[object, str | Target | None, tuple[int, ...]], PlanPair] = {}
        self.last_calls = MemoKey[_LastCalls]("the last calls")
        self.joint_plans = MemoKey[_JointPlans]("the plans for all parts")
        self._adapt = adapt

    def forget(self) -> None:
        """Drop all plans."""
        self.by_key.clear()
        # Entries that matrices keep become unreachable, since a key equals only itself.
        self.last_calls = MemoKey("the last calls")
        self.joint_plans = MemoKey("the plans for all parts")

    def try_last(
        self, tensor: SparseTensor, dense: tuple[Any, ...], out: Array | None
    ) -> Array | None:
        """Return the result by the plan of the last such call with the tensor, and count the call. None if
        there is no such plan, if it refuses the operands, or if another format is to be considered now."""
        first = dense[0]
        calls = self.last_calls.find(tensor)
        if calls is None or type(first) is not ndarray:
            return None
        # The dtype and the first dimension are checked by the plan itself.
        sizes = first.shape[1:]
        last_call = calls.get(sizes)
        if last_call is None:
            return None
        history, next_action_call, run, _ = last_call
        number = history.calls + 1
        if number >= next_action_call:
            # Another format may be next, with another plan.
            calls.pop(sizes, None)
            return None
        if self._adapt is not None:
            dense = self._adapt(*dense)
        result = run(dense, out)
        if result is not None:
            history.calls = number
        return result

    def _keep_last(
        self,
        counted: CountedCall,
        sizes: tuple[int, ...],
        plan: CallPlan,
        arguments: MatrixArguments,
    ) -> None:
        """Keep a plan, and the arguments for the matrix that was prepared for the call, for `try_last`."""
        history, next_action_call = counted.history, counted.next_action_call
        run = plan.bind(arguments.fixed)
        call = RepeatedCall(history, next_action_call, run, arguments)
        calls = self.last_calls.get(counted.tensor, _no_calls)
        put_bounded(calls, sizes, call, limit=MAX_REPEATED_CALLS)

    def try_run(
        self,
        matrix: Any,
        dense: tuple[Any, ...],
        out: Array | None,
        target: str | Target | None,
        *,
        counted: CountedCall | None = None,
    ) -> Array | None:
        """Return the result of a call by the plan of an earlier one; None if there is none that accepts the
        operands. Later calls with the tensor of a call that is `counted` find the plan by `try_last`."""
        first = dense[0]
        if type(first) is not ndarray:
            return None
        sizes = first.shape[1:]
        arguments = matrix_arguments(matrix)
        if arguments is None:
            if is_decomposition(matrix):
                # A matrix in parts keeps its plans itself, because they contain its arrays.
                joint = self.joint_plan(matrix, target, sizes)
                return None if joint is None else joint.run(dense, out)
            return None
        pair = self.by_key.get((arguments.key, target, sizes))
        if pair is None:
            converted = self._pair_of_converted(matrix, target, sizes)
            if converted is None:
                return None
            arguments, pair = converted
        if self._adapt is not None:
            dense = self._adapt(*dense)
        result = pair.run(arguments, dense, out)
        if counted is not None and result is not None:
            self._keep_last(counted, sizes, pair.plan, arguments)
        return result

    def _pair_of_converted(
        self, matrix: Any, target: str | Target | None, sizes: tuple[int, ...]
    ) -> tuple[MatrixArguments, PlanPair] | None:
        """Return the plans for the matrix in CSR, and its arguments in this format, if an earlier call has
        converted it. None otherwise: operators compute with some formats directly."""
        converted = converted_arguments(matrix)
        if converted is None:
            return None
        pair = self.by_key.get((converted.key, target, sizes))
        return None if pair is None else (converted, pair)

    def joint_plan(
        self, matrix: Decomposition, target: str | Target | None, sizes: tuple[int, ...]
    ) -> JointPlan | None:
        """Return the plan for a matrix in parts; None if there is none."""
        plans = self.joint_plans.find(matrix)
        return None if plans is None else plans.get((target, sizes))

    def keep(
        self,
        operands: Operands[KernelMatrix],
        spec: KernelSpec,
        kernel: Kernel,
        *,
        target: str | Target | None,
    ) -> None:
        """Keep a plan of a kernel for later calls with such operands."""
        matrix = operands.matrix
        # Long calls run in ranges of rows, so the microseconds that a plan saves do not matter.
        if matrix.plan_key is None or is_made_in_ranges(operands.products):
            return
        key = (matrix.plan_key, target, operands.plan_sizes)
        existing = self.by_key.get(key)
        # The kernel changes with the stats of the matrix.
        if existing is not None and existing.plan.kernel is kernel:
            return
        make_plan = partial(
            _plan, structure_parameters=matrix.structure_parameters, passed=operands.passed
        )
        make_checking = cache(partial(_checking_plan, spec, make_plan, target=target))
        pair = PlanPair(make_plan(kernel), make_checking)
        put_bounded(self.by_key, key, pair, limit=MAX_PLANS)

    def keep_joint(
        self,
        operands: Operands[MatrixInParts],
        calls: Sequence[BoundCall],
        *,
        target: str | Target | None,
        prepare: Callable[[Array], None] | None,
    ) -> None:
        """Keep a plan of these calls, one for each part, for later ones with other dense operands; none if
        a kernel is not native."""
        native = [call for call in calls if isinstance(call, NativeCall)]
        if len(native) < len(calls):
            return
        # Imported late: few matrices are in parts.
        from gossamer_backend import JointPlan

        plan = JointPlan(native, passed=operands.passed, prepare=prepare)
        plans = self.joint_plans.get(operands.matrix.decomposition, _no_plans)
        put_bounded(plans, (target, operands.plan_sizes), plan, limit=MAX_JOINT_PLANS)


def _checking_plan(
    spec: KernelSpec,
    make_plan: Callable[[Kernel], CallPlan],
    *,
    target: str | Target | None,
) -> CallPlan | None:
    """Return the plan of a kernel that checks the index arrays; None if that is left to callers."""
    variant = replace(spec.variant, checks=True)
    kernel = kernel_for(spec._replace(variant=variant), target=target).kernel
    if any(param.facts for param in kernel.signature.buffers):
        return None
    return make_plan(kernel)


def _plan(
    kernel: Kernel,
    *,
    structure_parameters: StructureParameters,
    passed: tuple[str, ...],
) -> CallPlan:
    """Return the plan of a kernel that is called with the arrays and sizes of a matrix, whose parameters are
    `structure_parameters`, and the `passed` arrays."""
    return kernel.plan(
        pointers=structure_parameters.arrays, scalars=structure_parameters.sizes, passed=passed
    )
