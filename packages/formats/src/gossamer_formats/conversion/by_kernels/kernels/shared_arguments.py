"""The arguments that the kernels of a conversion share, and numbers of elements as expressions of them."""

from __future__ import annotations

from operator import mul as multiplied
from typing import Any, NamedTuple

from gossamer_formats.conversion.by_kernels.kernels.kernel_call import ArrayArgument
from gossamer_formats.conversion.by_kernels.recording.branch import RecordedValue
from gossamer_formats.conversion.by_kernels.recording.recorder import Recorder
from gossamer_ir.core.build import ONE, index, index_var, integer_value, mul, var_name
from gossamer_ir.nodes import Const, Expr, Fact

MAX_CONSTANT = 16
"""The largest width that is a constant of the kernel, so that the loop can be unrolled. A kernel with
another constant is compiled anew."""


class Size(NamedTuple):
    """A number of elements: an expression of the arguments, and its value, which may differ between
    tensors."""

    expr: Expr
    value: int | RecordedValue


SINGLE = Size(ONE, 1)
"""The number of elements before all axes."""


class SharedArguments:
    """Arguments by name, to which those of later axes are added."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.by_name: dict[str, Any] = {}

    def integer(self, name: str, value: int | RecordedValue) -> Size:
        """Add an integer."""
        self.by_name[name] = value
        return Size(index_var(name), value)

    def constant(self, name: str, value: int) -> Size:
        """Return a number that is the same for all tensors; large ones are arguments."""
        if value <= MAX_CONSTANT:
            return Size(index(value), value)
        return self.integer(name, value)

    def array(
        self, name: str, array: RecordedValue, dtype: str, size: Expr, facts: tuple[Fact, ...] = ()
    ) -> None:
        """Add an array."""
        self.by_name[name] = ArrayArgument(array, dtype, (size,), facts)

    def product(self, name: str, first: Size, second: Size) -> Size:
        """Return a product: that of two arguments is one of its own, so that sizes are linear."""
        if 1 in (first.value, second.value):
            return second if first.value == 1 else first
        value = product_value(self.recorder, first.value, second.value)
        # The provers of bounds take linear expressions only.
        if isinstance(first.expr, Const) or isinstance(second.expr, Const):
            return Size(mul(first.expr, second.expr), value)
        return self.integer(name, value)


def product_value(
    recorder: Recorder, first: int | RecordedValue, second: int | RecordedValue
) -> int | RecordedValue:
    """Return the product of two numbers."""
    if isinstance(first, int) and isinstance(second, int):
        return first * second
    return recorder.compute(multiplied, first, second)


def size_value(arguments: SharedArguments, size: Expr) -> int | RecordedValue | None:
    """Return the value of a size: of a constant, or of an argument; None for others."""
    name = var_name(size)
    if name is None:
        return integer_value(size)
    value: int | RecordedValue | None = arguments.by_name.get(name)
    return value
