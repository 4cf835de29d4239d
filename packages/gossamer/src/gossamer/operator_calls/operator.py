"""Operators: callables with a fast path for operands in their usual form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import update_wrapper
from inspect import signature
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeAlias

import numpy as np
from msgspec.structs import replace

from gossamer.operator_calls.binding.bind_kernel import bind_kernel
from gossamer.operator_calls.fast_path.plans import Adapt, Plans
from gossamer.operator_calls.fast_path.repeated_products import count_call
from gossamer.operator_calls.format_operators import format_operator
from gossamer.operator_calls.operands.checked_operands import Operands, has_one_kernel, is_in_parts
from gossamer.operator_calls.operands.dense_operands import output_array
from gossamer.operator_calls.operands.matrix_operand import MatrixOperand
from gossamer.operator_calls.operator_program import OperatorProgram
from gossamer.operator_calls.run_operator import run_operator
from gossamer_backend import HOST, BoundCall, CallPlan
from gossamer_formats import Array, SparseTensor
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Decision, ScheduleReport, Target
from gossamer_support.typed_calls import typed

if TYPE_CHECKING:
    from gossamer.operator_calls.binding.bound_kernels import BoundKernels

P = ParamSpec("P")

DecideForm: TypeAlias = Callable[[str, Mapping[str, int], "str | Target"], "Decision | None"]
"""Returns how products of operands of a dtype and of sizes are computed for a target, with the reason; None
if always by the kernel."""


_MISSING: Any = object()


class Operator(Generic[P]):
    """A function of a sparse matrix and dense arrays, such as `gossamer.spmm`.

    `program` is compiled for the dtypes and sizes of the operands. A call attempts these in order, and the
    first that returns a result ends it:

    1. `Plans.try_last`: the plan of the last such call with the same tensor. First, because it is one
       look-up; it also counts the call.
    2. `Plans.try_run`: the plan of an earlier call whose matrix had the same key; operands in their usual
       form are checked by straight-line code. The call is counted before, and a tensor with which many
       products were computed is replaced by one in a faster format (`repeated_products.py`).
    3. The function that a distribution registers for this operator of tensors in the format. After the
       plans, of which such a format has none: only `function` makes them. Before `function`, which would
       convert the tensor to CSR.
    4. `function`, for everything else: it converts operands, or raises the error.
    """

    def __init__(
        self,
        program: OperatorProgram,
        function: Callable[P, Array],
        *,
        checked_operands: Callable[..., Operands[MatrixOperand]],
        adapt: Adapt | None = None,
        decide: DecideForm | None = None,
    ) -> None:
        """`checked_operands` returns the checked operands of a call. `adapt` returns dense operands as arrays
        for the kernel if they differ from those of the call. A function that leaves some results to a library
        tells by `decide` which these are."""
        self.program = program
        # Not a property: each call reads it.
        self.name = program.name
        self._checked_operands = checked_operands
        self._function = function
        self._plans = Plans(adapt=adapt)
        self._decide = decide
        # If an operator decides, a library computes most calls. They have no plans: attempts with them would
        # take 6 of 24 microseconds.
        self._has_plans = decide is None
        update_wrapper(self, function)

    @property
    def plans(self) -> tuple[CallPlan, ...]:
        """The plans of earlier calls."""
        return tuple(pair.plan for pair in self._plans.by_key.values())

    def explain_calls(
        self,
        report: ScheduleReport,
        *,
        dtype: str,
        sizes: Mapping[str, int],
        target: str | Target,
    ) -> ScheduleReport:
        """Return the report about calls with a target from that of the kernel: first the decision whether
        they use the kernel, if there is one. `dtype` is that of the operands; `sizes` are those that are
        fixed, by parameter."""
        decision = None if self._decide is None else self._decide(dtype, sizes, target)
        if decision is None:
            return report
        return replace(report, decisions=(decision, *report.decisions))

    def forget(self) -> None:
        """Drop all plans; later calls make them again."""
        self._plans.forget()

    def __repr__(self) -> str:
        return f"<operator {self.name}>"

    def __reduce__(self) -> str:
        """Pickle the name, as for a function: other processes have plans of their own."""
        return self.name

    if TYPE_CHECKING:

        def __call__(self, *values: P.args, **options: P.kwargs) -> Array:
            """Return the result; operands and errors are those of the function."""

    else:

        def __call__(
            self,
            matrix: Any = _MISSING,
            /,
            *dense: Any,
            out: Array | None = None,
            target: str | Target | None = None,
            **named: Any,
        ) -> Array:
            # Keywords and missing operands are errors, or rare: their order is that of `function`.
            if dense and self._has_plans and not named:
                counted = None
                if target is None and type(matrix) is SparseTensor:
                    result = self._plans.try_last(matrix, dense, out)
                    if result is not None:
                        return result
                    # Counted after the attempt above, which counts the calls that it computes.
                    counted = count_call(self.program, matrix, dense[0])
                    matrix = counted.prepared
                result = self._plans.try_run(matrix, dense, out, target, counted=counted)
                if result is not None:
                    return result
            values = () if matrix is _MISSING else (matrix, *dense)
            return self._call_function(values, named, out=out, target=target)

    def _call_function(
        self,
        values: tuple[Any, ...],
        named: dict[str, Any],
        *,
        out: Array | None,
        target: str | Target | None,
    ) -> Array:
        """Return the result by the function that a distribution registers for the format of the matrix, if
        there is one; else by that of this operator."""
        matrix = values[0] if values else named.get(_first_parameter(self._function))
        registered = format_operator(self.name, matrix)
        if registered is None or registered is self:
            function: Callable[..., Array] = self._function
            return function(*values, out=out, target=target, **named)
        # Only what was passed, so that a function of a format need not have all options.
        options = {"out": out, "target": target}
        passed = {name: value for name, value in options.items() if value is not None}
        result: Array = registered(*values, **passed, **named)
        return result

    def checked_operands(
        self, *values: Any, target: str | Target | None = None
    ) -> Operands[MatrixOperand]:
        """Check the operands of a call; raise `ArgumentError` (`operator.operands`) if their number is
        wrong."""
        parameters = dict(signature(self._checked_operands).parameters)
        # Only some programs compute with a matrix in other formats than CSR, which depend on the target.
        options = {"target": target} if parameters.pop("target", None) else {}
        required = sum(parameter.default is parameter.empty for parameter in parameters.values())
        if not required <= len(values) <= len(parameters):
            most = len(parameters)
            numbers = str(required) if required == most else f"{required} to {most}"
            raise ArgumentError(
                "operator.operands",
                f"The number of operands of {self.name} is {len(values)}; expected {numbers}: "
                f"{', '.join(parameters)}.",
            )
        return self._checked_operands(*values, **options)

    def run(
        self,
        operands: Operands[MatrixOperand],
        *,
        alpha: float = 1.0,
        beta: float = 0.0,
        out: Array | None,
        target: str | Target | None,
    ) -> Array:
        """Return alpha times the result for checked operands, plus beta times `out`, in `out` if it is
        given."""
        return run_operator(
            self.program,
            operands,
            alpha=alpha,
            beta=beta,
            out=out,
            target=target,
            plans=self._plans,
        )

    @typed
    def bind(
        self,
        *values: Any,
        out: Array,
        target: str | Target | None = None,
        check: bool = False,
    ) -> BoundCall | BoundKernels:
        """Return the operator bound to these arrays, which are checked once: a call only runs the kernel, or
        those of the parts of a matrix.

        Operands (also numbers), `out` and errors are as for a call. A tensor in a format for which a
        distribution registers this operator is bound by the `bind` of its function, with the same options;
        without one, `ArgumentError` (`operator.bind`) is raised. Dense operands must be C-contiguous, as
        they are read again at each call. The values of arrays may change between calls, but not the
        structure of a SciPy matrix or of a tensor that borrows its arrays. Rows of more than 2**24 elements
        are not added in blocks. A `SparseTensor`'s index arrays were checked when it was made; with `check`
        they are checked again, and `ArgumentError` has the position of the first violation.

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
        registered = format_operator(self.name, values[0]) if values else None
        if registered is not None and registered is not self:
            bind = _bind_of(registered, self.name, values[0])
            options = {
                name: value for name, value in (("target", target), ("check", check)) if value
            }
            bound: BoundCall | BoundKernels = bind(*values, out=out, **options)
            return bound
        checked = self.checked_operands(*values, target=target)
        if checked.device(out) == HOST:
            for operand, original in zip(checked.dense.values(), values[1:], strict=False):
                # Numbers have no memory that the caller could write to later.
                if isinstance(original, np.ndarray):
                    _require_itself(operand, original)
        return self._bind_checked(checked, out=out, target=target, check=check)

    def _bind_checked(
        self,
        checked: Operands[MatrixOperand],
        *,
        out: Array,
        target: str | Target | None,
        check: bool,
    ) -> BoundCall | BoundKernels:
        device = checked.device(out)
        if device != HOST:
            # Imported late: most arrays are on the host.
            from gossamer.operator_calls.binding.bind_on_device import bind_on_device

            assert has_one_kernel(checked)
            call, _ = bind_on_device(self.program, checked, out=out, device=device, target=target)
            return call
        _, result = output_array(
            out, dtype=checked.result_dtype, shape=checked.shape, inputs=checked.inputs
        )
        if is_in_parts(checked):
            # Imported late: most matrices have one format.
            from gossamer.operator_calls.binding.bind_parts import bind_parts

            return bind_parts(self.program, checked, result, target=target, check=check)
        assert has_one_kernel(checked)
        return bind_kernel(self.program, checked, result, target=target, check=check)


def operator(
    program: OperatorProgram,
    checked_operands: Callable[..., Operands[MatrixOperand]],
    *,
    adapt: Adapt | None = None,
    decide: DecideForm | None = None,
) -> Callable[[Callable[P, Array]], Operator[P]]:
    """Decorate the function that computes an operator for operands of any form; see `Operator`."""

    if program.parsed is None:
        # Imported late: the scripts of gossamer's operators are parsed and checked when they are generated.
        from gossamer.operator_calls.operator_contract import require_operator_contract

        require_operator_contract(program)

    def decorate(function: Callable[P, Array]) -> Operator[P]:
        return Operator(
            program, function, checked_operands=checked_operands, adapt=adapt, decide=decide
        )

    return decorate


def _first_parameter(function: Callable[..., Any]) -> str:
    return next(iter(signature(function).parameters))


def _bind_of(function: Callable[..., Any], name: str, tensor: Any) -> Callable[..., Any]:
    """Return the `bind` of a function that a distribution registers for an operator."""
    bind: Callable[..., Any] | None = getattr(function, "bind", None)
    if bind is None:
        raise ArgumentError(
            "operator.bind",
            f"The function that a distribution registers for '{name}' of tensors in the format "
            f"'{tensor.format}' cannot be bound to arrays.",
            hint="Call the operator, or convert the tensor with asformat('csr').",
        )
    return bind


def _require_itself(operand: Array, dense: Array) -> None:
    """Raise unless the operands can be used without a copy, which later writes of the caller would not
    reach."""
    if operand.shape != dense.shape:
        raise ArgumentError(
            "operand.shape",
            f"A dense operand has the shape {dense.shape}, and the kernel reads an array of {operand.shape}; "
            "a copy would not see later writes.",
            hint="Pass an array of that shape, or call the operator.",
        )
    if operand is not dense and not np.shares_memory(operand, dense):
        raise ArgumentError(
            "operand.contiguity",
            f"A dense operand has the strides {dense.strides}; expected a C-contiguous array.",
            hint="Copy it with numpy.ascontiguousarray, and write to the copy.",
        )
