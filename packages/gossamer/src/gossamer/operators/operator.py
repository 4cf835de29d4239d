"""Operators: callables with a fast path for operands in their usual form."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial, update_wrapper
from inspect import signature
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec, Protocol

import msgspec
import numpy as np
from numpy import ndarray

from gossamer.bounded_dict import put_bounded
from gossamer.operators.kernels import kernel_for
from gossamer.operators.operands import CHECKED, Operands, output
from gossamer.operators.portions import (
    BoundPortions,
    has_long_rows,
    in_blocks,
    is_much_work,
    row_portions,
)
from gossamer.operators.program import OperatorProgram, Variant
from gossamer.operators.structure import POINTERS, SCALARS, key_of, structure_of
from gossamer_backend import BoundCall, CallPlan, Kernel
from gossamer_backend.call.plan import FixedArguments
from gossamer_formats import Array
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Stats, Target
from gossamer_ir.support.typed_calls import typed

if TYPE_CHECKING:
    from gossamer.kernel_cache import Built

P = ParamSpec("P")

MAX_PLANS = 1024
"""The number of plans that an operator keeps; the first is dropped."""

MIN_FUSED_CHECK = 131_072
"""The number of nonzeros from which a kernel checks index arrays itself, block by block. Fewer are still in
the caches when the kernel reads them after the check, and do not pay for another kernel. Measured beyond it,
on two threads: 1 to 20 percent of a call, 8 in the mean, against 2 to 25, 12 in the mean, for a check
before."""

_Key = tuple[object, str | Target | None, tuple[int, ...]]


class _Plans(NamedTuple):
    """The plan for arrays that were checked, and a function that returns the one whose kernel checks index
    arrays itself, or None if no kernel can."""

    plan: CallPlan
    checking: Callable[[], CallPlan | None]


class Checked(Protocol):
    """The checked operands of one call: `Operands`, or those of a variant for another format."""

    @property
    def dense(self) -> dict[str, Array]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def inputs(self) -> tuple[Array, ...]: ...
    @property
    def products(self) -> int: ...
    @property
    def is_zero(self) -> bool: ...
    def kernel(self, program: OperatorProgram, target: str | Target | None, /) -> Built: ...
    def arguments(self, program: OperatorProgram, result: Array, /) -> dict[str, Array]: ...


class Operator(Generic[P]):
    """A function of a sparse matrix and dense arrays, such as `gossamer.spmm`.

    `program` is compiled for the dtypes and sizes of the operands. A call first tries the plan of an earlier
    one: operands in their usual form are checked by straight-line code. Everything else is left to
    `function`, which converts operands or raises the error.
    """

    def __init__(
        self,
        program: OperatorProgram,
        function: Callable[P, Array],
        *,
        operands: Callable[..., Checked],
        adapt: Callable[..., tuple[Any, ...]] | None = None,
    ) -> None:
        """`operands` checks the operands of a call. `adapt` returns dense operands as arrays for the kernel
        if they are others than those of the call."""
        self.program = program
        self._operands = operands
        self._function = function
        self._adapt = adapt
        self._plans: dict[_Key, _Plans] = {}
        update_wrapper(self, function)

    @property
    def plans(self) -> tuple[CallPlan, ...]:
        """The plans of earlier calls."""
        return tuple(plans.plan for plans in self._plans.values())

    def forget(self) -> None:
        """Drop all plans; later calls make them again."""
        self._plans.clear()

    @property
    def name(self) -> str:
        """The name of the operator."""
        return self.program.name

    def __repr__(self) -> str:
        return f"<operator {self.name}>"

    def __reduce__(self) -> str:
        """Pickle the name, as for a function: other processes have plans of their own."""
        return self.name

    if TYPE_CHECKING:

        def __call__(self, *operands: P.args, **options: P.kwargs) -> Array:
            """Return the result; operands and errors are those of the function."""

    else:

        def __call__(
            self,
            *operands: Any,
            out: Array | None = None,
            target: str | Target | None = None,
            **named: Any,
        ) -> Array:
            if len(operands) > 1 and not named:
                first = operands[1]
                structure = structure_of(operands[0]) if type(first) is ndarray else None
                if structure is not None:
                    key, arguments, _ = structure
                    plans = self._plans.get((key, target, first.shape[1:]))
                    if plans is not None:
                        result = self._run_by_plans(plans, arguments, operands, out)
                        if result is not None:
                            return result
            return self._function(*operands, out=out, target=target, **named)

    def _run_by_plans(
        self,
        plans: _Plans,
        arguments: FixedArguments,
        operands: tuple[Any, ...],
        out: Array | None,
    ) -> Array | None:
        """Return the result by one of the plans; None if it refuses the operands."""
        # An array that was passed must stay as it is if an
        # index is wrong, so all are checked before.
        if arguments.check is not None and out is None and arguments.scalars[-1] >= MIN_FUSED_CHECK:
            checking = plans.checking()
            if checking is not None:
                try:
                    return self._run_by_plan(
                        checking, arguments._replace(check=None), operands, None
                    )
                except ArgumentError as error:
                    if error.code != "kernel.out_of_bounds":
                        raise
                    return None
        return self._run_by_plan(plans.plan, arguments, operands, out)

    def _run_by_plan(
        self,
        plan: CallPlan,
        arguments: FixedArguments,
        operands: tuple[Any, ...],
        out: Array | None,
    ) -> Array | None:
        """Return the result by a plan; None if it refuses the operands."""
        if self._adapt is None:
            if (
                len(operands) == 2 and plan.inputs == 1
            ):  # the usual number: no further tuple is made
                return plan.run(arguments, operands[1], out)
            dense = operands[1:]
        else:
            dense = self._adapt(*operands[1:])
        return plan.run(arguments, *dense, out) if len(dense) == plan.inputs else None

    def operands(self, *given: Any) -> Checked:
        """Check the operands of a call; raise `ArgumentError` (`operator.operands`) if their number is
        wrong."""
        parameters = signature(self._operands).parameters
        wanted = tuple(name for name, at in parameters.items() if at.default is at.empty)
        if not len(wanted) <= len(given) <= len(parameters):
            raise ArgumentError(
                "operator.operands",
                f"The number of operands of {self.name} is {len(given)}; expected {len(wanted)}: "
                f"{', '.join(wanted)}.",
            )
        return self._operands(*given)

    def run(self, operands: Checked, *, out: Array | None, target: str | Target | None) -> Array:
        """Return the result for checked operands, in `out` if it is given."""
        result, array = output(
            out, dtype=operands.dtype, shape=operands.shape, inputs=operands.inputs
        )
        # Kernels are not called for empty results: an empty array has no address to pass.
        if array.size == 0 or operands.is_zero:
            array[...] = 0
            return result
        if isinstance(operands, Operands) and self.program.sums_rows and has_long_rows(operands):
            self._run_in_blocks(operands, array, target)
        else:
            kernel = operands.kernel(self.program, target).kernel
            # Long calls run in portions, and do not notice the microseconds that a plan saves.
            if isinstance(operands, Operands) and not is_much_work(operands.products):
                self._plan(operands, target, kernel)
            self._compute(operands, kernel, array)
        return result

    def _compute(self, operands: Checked, kernel: Kernel, result: Array) -> None:
        """Run the kernel, in portions if it takes long: Ctrl-C is noticed between them."""
        arrays = operands.arguments(self.program, result)
        parts: Iterable[dict[str, Any]] = (arrays,)
        if is_much_work(operands.products):
            parts = row_portions(kernel.signature, arrays, operands.products)
        for part in parts:
            kernel.bind(verified=CHECKED, **part)()

    def _run_in_blocks(
        self, operands: Operands, result: Array, target: str | Target | None
    ) -> None:
        """Compute the sums of blocks of rows, and add those of each row in float64."""
        block_operands, starts = in_blocks(operands)
        sums = np.zeros(block_operands.shape, result.dtype)
        self._compute(block_operands, block_operands.kernel(self.program, target).kernel, sums)
        # In float64, since the sums of blocks are what float32 can no longer add exactly.
        exact = np.add.reduceat(sums, starts, axis=0, dtype=np.float64)
        result[...] = result + exact if self.program.adds else exact

    def _plan(self, operands: Operands, target: str | Target | None, kernel: Kernel) -> None:
        """Keep a plan for later calls with such operands."""
        (first, *_) = operands.dense.values()
        key = (key_of(operands.matrix), target, first.shape[1:])
        stored = self._plans.get(key)
        # The kernel changes with the stats of the matrix.
        if stored is not None and stored.plan.kernel is kernel:
            return
        passed = (*operands.dense, operands.output)
        stats = operands.matrix.stats()
        variant = msgspec.structs.replace(operands.variant(), checks=True)
        checking = partial(self._checking_plan, variant, passed, stats=stats, target=target)
        plan = kernel.plan(pointers=POINTERS, scalars=SCALARS, passed=passed)
        put_bounded(self._plans, key, _Plans(plan, cache(checking)), limit=MAX_PLANS)

    def _checking_plan(
        self,
        variant: Variant,
        passed: tuple[str, ...],
        *,
        stats: Stats,
        target: str | Target | None,
    ) -> CallPlan | None:
        """Return the plan of a kernel that checks the index arrays; None if that is left to callers."""
        kernel = kernel_for(self.program, variant, stats=stats, target=target).kernel
        if any(param.facts for param in kernel.signature.buffers):
            return None
        return kernel.plan(pointers=POINTERS, scalars=SCALARS, passed=passed)

    @typed
    def bind(
        self,
        *operands: Any,
        out: Array,
        target: str | Target | None = None,
        check: bool = False,
    ) -> BoundCall:
        """Return the operator bound to these arrays, which are checked once: a call only runs the kernel.

        Operands (also numbers), `out` and errors are as for a call; dense operands must be C-contiguous, as
        they are read again at each call. The values of arrays may change between calls, but not the
        structure of a SciPy matrix. Rows of more than 2**24 elements are not added in blocks. A
        `SparseTensor`'s index arrays were checked when it was made; with `check` they are checked again, and
        `ArgumentError` has the position of the first violation.

        >>> import numpy as np, scipy.sparse, gossamer as gs
        >>> A = scipy.sparse.csr_array(np.array([[0.0, 2.0], [0.0, 0.0]]))
        >>> x, y = np.array([1.0, 3.0]), np.empty(2)
        >>> step = gs.spmv.bind(A, x, out=y)
        >>> step()
        >>> y
        array([6., 0.])
        >>> x[:] = 10
        >>> step()
        >>> y
        array([20.,  0.])
        """
        checked = self.operands(*operands)
        for operand, given in zip(checked.dense.values(), operands[1:], strict=False):
            # Numbers have no memory that the caller could write to later.
            if isinstance(given, np.ndarray):
                _require_itself(operand, given)
        _, result = output(out, dtype=checked.dtype, shape=checked.shape, inputs=checked.inputs)
        kernel = checked.kernel(self.program, target).kernel
        arrays: dict[str, Any] = {**checked.arguments(self.program, result)}
        whole = kernel.bind(verified=CHECKED, check=check, **arrays)
        if not is_much_work(checked.products):
            return whole
        portions: Iterable[dict[str, Any]] = row_portions(
            kernel.signature, arrays, checked.products
        )
        calls = [kernel.bind(verified=CHECKED, **portion) for portion in portions]
        return BoundPortions(calls, whole.arguments)


def operator(
    program: OperatorProgram,
    operands: Callable[..., Checked],
    *,
    adapt: Callable[..., tuple[Any, ...]] | None = None,
) -> Callable[[Callable[P, Array]], Operator[P]]:
    """Decorate the function that computes an operator for operands of any form; see `Operator`."""

    def decorated(function: Callable[P, Array]) -> Operator[P]:
        return Operator(program, function, operands=operands, adapt=adapt)

    return decorated


def _require_itself(operand: Array, dense: Array) -> None:
    """Raise unless the operands can be used without a copy, which later writes of the caller would not
    reach."""
    if operand is not dense and not np.shares_memory(operand, dense):
        raise ArgumentError(
            "operand.contiguity",
            f"A dense operand has the strides {dense.strides}; expected a C-contiguous array.",
            hint="Copy it with numpy.ascontiguousarray, and write to the copy.",
        )
