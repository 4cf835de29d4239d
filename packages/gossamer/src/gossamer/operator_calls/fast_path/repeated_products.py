"""Formats for repeated products: a tensor in CSR is converted once its calls would have paid for it.

Calls are counted for a pattern, whose tensors may have other values at each call, such as the weights of a
layer in training. The number of calls is not known. Each product in CSR costs more than one in the best
format; the pattern is converted when the sum of these differences reaches the cost of the conversion. From
then on, the values of a tensor are moved to the other format once the calls since its first one would have
paid for that. Whenever the calls end, they then take at most twice the time that they would have taken with
the best decision (the ski rental problem; Karlin and others, "Competitive snoopy caching", 1988). The times
are those that the model of `gossamer_tune` expects, so that a program does the same each time that it runs.

Only tensors that own their arrays are converted, since these are read-only. Blocks are chosen here only if
all of them are full: others are filled up with zeros, and zero times infinity is not zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from numpy import ndarray

from gossamer.operator_calls.row_ranges import is_made_in_ranges
from gossamer.targets.parse_target import DEFAULT_TARGET
from gossamer_backend import get_num_threads
from gossamer_formats import SparseTensor
from gossamer_formats.internal_api import WIDE_DTYPES, MemoKey, is_format
from gossamer_ir.core.axis_kinds import indices_of
from gossamer_support.bounded_dict import put_bounded
from gossamer_support.fork import compiling

if TYPE_CHECKING:
    from gossamer.operator_calls.operator_program import OperatorProgram
    from gossamer.operator_calls.prepared_formats.chosen_format import (
        ConvertedPattern,
        PreparedMatrix,
    )
    from gossamer_tune import FormatChoice

MIN_NONZEROS = 1 << 14
"""Calls with fewer nonzeros take a few microseconds, most of them in Python."""

PRODUCTS_BEFORE_CHOICE = 1 << 27
"""The products after which the properties of a matrix are computed: as much time as these take, 10 ms."""

COMPILE_CYCLES = 1.5e9
"""Cycles to compile the conversion and the kernel for another format, half a second, unless they are
cached."""

MOVE_CYCLES = 10.0
"""Cycles to move a value to its place in another format, and to bind the kernel to it."""

MANY_CALLS = 10**9
"""Calls for which any conversion pays."""

MAX_STORED = 2
"""The number of formats in which a pattern is kept besides CSR: one for products with vectors, one for
others."""

MEMORY_DIVISOR = 8
"""A pattern is converted if it has at most an eighth of the available memory."""

MAX_HISTORIES = 64
"""The number of operators and numbers of columns whose calls are counted."""

NEVER = 1 << 62
"""The next action call of a history without further actions."""


class CallHistory:
    """The calls with matrices of one pattern: their number so far, and the decisions about them.

    `next_action_call` is the number of the call at which a format is chosen, then of the one at which the
    pattern is converted to it. Moving the values of a matrix to the format pays for `moving_calls` calls.
    """

    __slots__ = ("calls", "choice", "converted", "moving_calls", "next_action_call")

    def __init__(self, next_action_call: int) -> None:
        self.calls = 0
        self.next_action_call = next_action_call
        self.choice: FormatChoice | None = None
        self.moving_calls = 1
        self.converted: ConvertedPattern | None = None


class CountedCall(NamedTuple):
    """A call with a tensor, the matrix in the format for it, and the count of such calls. At the next action
    call a format is chosen, the pattern is converted, or the values of this tensor are moved."""

    tensor: SparseTensor
    prepared: PreparedMatrix
    history: CallHistory
    next_action_call: int


class StoredValues:
    """A tensor in other formats by the texts of their estimates, and the number of its first call in each
    history. The tensor keeps this object, which ends with it."""

    __slots__ = ("first_calls", "matrices")

    def __init__(self) -> None:
        self.first_calls: dict[CallHistory, int] = {}
        self.matrices: dict[str, PreparedMatrix] = {}


class RepeatedProducts:
    """The calls with the matrices of a pattern by operator, number of columns and dtype, and the pattern in
    the formats for them. The pattern keeps this object, which ends with it."""

    def __init__(self) -> None:
        self._histories: dict[tuple[str, tuple[int, ...], str], CallHistory] = {}
        self._converted: dict[tuple[str, str], ConvertedPattern] = {}

    def count(
        self, tensor: SparseTensor, program: OperatorProgram, sizes: tuple[int, ...]
    ) -> CountedCall:
        """Count a call, and return it. `sizes` are those of the dense operand after the first one."""
        key = (program.name, sizes, tensor.value_dtype)
        history = self._histories.get(key)
        if history is None:
            history = _history(tensor, program, sizes)
            put_bounded(self._histories, key, history, limit=MAX_HISTORIES)
        history.calls += 1
        values = _VALUES.get(tensor, lambda _tensor: StoredValues())
        first_call = values.first_calls.get(history)
        if first_call is None:
            first_call = history.calls
            put_bounded(values.first_calls, history, first_call, limit=MAX_HISTORIES)
        if history.calls >= history.next_action_call and history.choice is None:
            self._choose(tensor, sizes, history)
        next_action_call = max(history.next_action_call, first_call + history.moving_calls - 1)
        if history.calls < next_action_call:
            return CountedCall(tensor, tensor, history, next_action_call)
        return CountedCall(tensor, self._prepare_as_chosen(tensor, values, history), history, NEVER)

    def _choose(self, tensor: SparseTensor, sizes: tuple[int, ...], history: CallHistory) -> None:
        """Choose a format, and the numbers of calls that pay for it."""
        # Imported late: rarely needed.
        from gossamer.operator_calls.prepared_formats.chosen_format import CHOICE

        with compiling:
            if history.choice is not None:
                # Another thread was here in the meantime.
                return
            choice = _choice(tensor, sizes)
            gain = choice.csr.cycles - choice.chosen.cycles
            history.moving_calls = _paying_calls(gain, MOVE_CYCLES * tensor.nnz)
            history.next_action_call = _paying_calls(
                gain, choice.chosen.conversion_cycles + COMPILE_CYCLES
            )
            history.choice = choice
            CHOICE.keep(tensor.pattern, choice._replace(chosen=choice.csr, calls=history.calls))

    def _prepare_as_chosen(
        self, tensor: SparseTensor, values: StoredValues, history: CallHistory
    ) -> PreparedMatrix:
        """Return a tensor in the chosen format; itself if its pattern cannot be converted."""
        from gossamer.operator_calls.prepared_formats.chosen_format import matrix_with_values

        if history.converted is None:
            with compiling:
                self._convert(tensor, history)
        converted, choice = history.converted, history.choice
        if converted is None or choice is None:
            return tensor
        # Several numbers of columns may have one best format.
        text = choice.chosen.text
        if text not in values.matrices:
            values.matrices[text] = matrix_with_values(converted, tensor.storage.values)
        return values.matrices[text]

    def _convert(self, tensor: SparseTensor, history: CallHistory) -> None:
        """Convert the pattern to the chosen format, unless it takes too much memory or has zeros added: then
        there is nothing more to do."""
        from gossamer.operator_calls.prepared_formats.chosen_format import (
            CHOICE,
            has_added_zeros,
            pattern_in_format,
        )
        from gossamer_formats.internal_api import available_memory

        choice = history.choice
        assert choice is not None, "a format is chosen before"
        key = (choice.chosen.text, tensor.value_dtype)
        converted = self._converted.get(key)
        if converted is None:
            is_large = MEMORY_DIVISOR * tensor.nbytes > available_memory()
            if not is_large and len(self._converted) < MAX_STORED:
                converted = pattern_in_format(tensor, choice.chosen)
                # The properties are those of a sample, so that a block elsewhere may not be full.
                if has_added_zeros(converted, tensor):
                    converted = None
        if converted is None:
            history.next_action_call = NEVER
            choice = choice._replace(chosen=choice.csr)
        else:
            history.converted = self._converted[key] = converted
        CHOICE.keep(tensor.pattern, choice._replace(calls=history.calls))


_PRODUCTS = MemoKey[RepeatedProducts | None]("the repeated products")
"""None for a pattern that is never converted."""

_VALUES = MemoKey[StoredValues]("the values in other formats")


def count_call(program: OperatorProgram, tensor: SparseTensor, dense: Any) -> CountedCall:
    """Count a call with a tensor, and return it with the matrix in the format for the call."""
    is_usual = type(dense) is ndarray and not tensor.is_borrowed
    # The model of costs is for values in which products are added.
    if is_usual and tensor.value_dtype in WIDE_DTYPES:
        products = _PRODUCTS.get(tensor.pattern, lambda _pattern: _repeated_products(tensor))
        if products is not None:
            return products.count(tensor, program, dense.shape[1:])
    return CountedCall(tensor, tensor, CallHistory(next_action_call=NEVER), NEVER)


def _repeated_products(tensor: SparseTensor) -> RepeatedProducts | None:
    """Return a new count of the calls with tensors of a pattern in CSR; None if they are never converted,
    because the pattern is small, was prepared, or has duplicates, which a conversion would add."""
    from gossamer.operator_calls.prepared_formats.chosen_format import CHOICE

    if CHOICE.find(tensor.pattern) or not is_format(tensor.description, "csr"):
        return None
    columns = indices_of(tensor.description.axes[-1])
    if columns is None or not columns.unique or tensor.nnz < MIN_NONZEROS:
        return None
    return RepeatedProducts()


def _history(matrix: SparseTensor, program: OperatorProgram, sizes: tuple[int, ...]) -> CallHistory:
    features = sizes[0] if len(sizes) == 1 else 1
    products = matrix.nnz * features
    # A product of parts cannot be interrupted between ranges of rows, and that of `spmm` with a vector is
    # one of `spmv`. Formats are not chosen for such calls.
    is_counted = program.sums_rows and len(sizes) == program.dense_dimensions - 1
    if not is_counted or not products or is_made_in_ranges(products):
        return CallHistory(next_action_call=NEVER)
    return CallHistory(next_action_call=PRODUCTS_BEFORE_CHOICE // products + 1)


def _choice(matrix: SparseTensor, sizes: tuple[int, ...]) -> FormatChoice:
    """Return the choice among formats in which results are the same but for rounding."""
    from gossamer.operator_calls.prepared_formats.row_order import properties_for
    from gossamer.targets.resolve_target import machine_for
    from gossamer_tune import Workload, choose_format

    features = sizes[0] if sizes else None
    machine = machine_for(DEFAULT_TARGET)
    # The machine that runs the calls: such calls are for the default target only.
    workload = Workload(features, matrix.dtype.name, machine, get_num_threads())
    properties = properties_for(matrix, workload)
    return choose_format(properties, workload, calls=MANY_CALLS, adds_zeros=False)


def _paying_calls(gain: float, cycles: float) -> int:
    """Return the number of calls, each with a gain, that pay for a number of cycles."""
    return NEVER if gain <= 0 else max(1, int(cycles / gain) + 1)
