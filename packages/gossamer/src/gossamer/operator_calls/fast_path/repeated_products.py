"""Formats for repeated products: a tensor in CSR is converted once its calls would have paid for it.

The number of calls with a tensor is not known. Each product in CSR costs more than one in the best format;
the tensor is converted when the sum of these differences reaches the cost of the conversion. Whenever the
calls end, they then take at most twice the time that they would have taken with the best decision (the ski
rental problem; Karlin and others, "Competitive snoopy caching", 1988). The times are those that the model of
`gossamer_tune` expects, so that a program does the same each time that it runs.

Only tensors that own their arrays are converted, since these are read-only. Blocks are chosen here only if
all of them are full: others are filled up with zeros, and zero times infinity is not zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from numpy import ndarray

from gossamer.operator_calls.row_ranges import is_made_in_ranges
from gossamer.targets import DEFAULT_TARGET
from gossamer_backend import get_num_threads
from gossamer_formats import SparseTensor
from gossamer_formats.internal_api import WIDE_DTYPES, MemoKey, is_format
from gossamer_ir.core.axis_kinds import indices_of
from gossamer_ir.support.bounded_dict import put_bounded
from gossamer_ir.support.fork import compiling

if TYPE_CHECKING:
    from gossamer.operator_calls.chosen_format import PreparedMatrix
    from gossamer.operator_calls.operator_program import OperatorProgram
    from gossamer_tune import FormatChoice

MIN_NONZEROS = 1 << 14
"""Calls with fewer nonzeros take a few microseconds, most of them in Python."""

PRODUCTS_BEFORE_CHOICE = 1 << 27
"""The products after which the properties of a matrix are computed: as much time as these take, 10 ms."""

COMPILE_CYCLES = 1.5e9
"""Cycles to compile the conversion and the kernel for another format, half a second, unless they are
cached."""

MANY_CALLS = 10**9
"""Calls for which any conversion pays."""

MAX_STORED = 2
"""The number of formats in which a tensor is kept besides CSR: one for products with vectors, one for
others."""

MEMORY_PART = 8
"""A tensor is converted if it has at most this part of the available memory."""

MAX_HISTORIES = 64
"""The number of operators and numbers of columns whose calls are counted."""

NEVER = 1 << 62
"""The number of the call at which something is due if nothing is."""


class CallHistory:
    """The number of calls so far, the number at which something is due, and what was decided."""

    __slots__ = ("calls", "choice", "due", "stored")

    def __init__(self, due: int) -> None:
        self.calls = 0
        self.due = due
        self.choice: FormatChoice | None = None
        self.stored: PreparedMatrix | None = None


class CountedCall(NamedTuple):
    """A call with a tensor, the matrix in the format for it, and the count of such calls."""

    tensor: SparseTensor
    stored: PreparedMatrix
    history: CallHistory


class RepeatedProducts:
    """The calls with a tensor by operator and number of columns, and the tensor in the formats for them. The
    tensor keeps this object, which ends with it."""

    def __init__(self) -> None:
        self._histories: dict[tuple[str, tuple[int, ...]], CallHistory] = {}
        self._stored: dict[str, PreparedMatrix] = {}

    def history(
        self, matrix: SparseTensor, program: OperatorProgram, sizes: tuple[int, ...]
    ) -> CallHistory:
        """Count a call, and return the history of such calls, with the matrix in the format for them. `sizes`
        are those of the dense operand after the first one."""
        history = self._histories.get((program.name, sizes))
        if history is None:
            history = _history(matrix, program, sizes)
            put_bounded(self._histories, (program.name, sizes), history, limit=MAX_HISTORIES)
        history.calls += 1
        if history.calls >= history.due:
            self._advance(matrix, sizes, history)
        return history

    def _advance(self, matrix: SparseTensor, sizes: tuple[int, ...], history: CallHistory) -> None:
        """Choose a format, or convert the matrix to the chosen one."""
        from gossamer.operator_calls.chosen_format import CHOICE  # Imported late: rarely due.

        with compiling:
            if history.calls < history.due:
                # Another thread was here in the meantime.
                return
            if history.choice is None:
                history.choice = _choice(matrix, sizes)
                history.due = _paying_calls(history.choice)
            choice = history.choice
            if history.calls >= history.due:
                history.due = NEVER
                history.stored = self._convert(matrix, choice)
            if history.stored is None:
                choice = choice._replace(chosen=choice.csr)
            CHOICE.keep(matrix, choice._replace(calls=history.calls))

    def _convert(self, matrix: SparseTensor, choice: FormatChoice) -> PreparedMatrix | None:
        """Return the matrix in the chosen format; None if it takes too much memory or has zeros added."""
        from gossamer.operator_calls.chosen_format import has_added_zeros, in_format
        from gossamer_formats.internal_api import available_memory

        text = choice.chosen.text
        # Several numbers of columns may have one best format.
        if text not in self._stored:
            is_large = MEMORY_PART * matrix.nbytes > available_memory()
            if is_large or len(self._stored) >= MAX_STORED:
                return None
            stored = in_format(matrix, choice.chosen)
            # The properties are those of a sample, so that a block elsewhere may not be full.
            if has_added_zeros(stored, matrix):
                return None
            self._stored[text] = stored
        return self._stored[text]


_PRODUCTS = MemoKey[RepeatedProducts | None]("the repeated products")
"""None for a tensor that is never converted."""


def count_call(program: OperatorProgram, matrix: SparseTensor, dense: Any) -> CountedCall:
    """Count a call with a tensor, and return it with the matrix in the format for the call."""
    products = _PRODUCTS.get(matrix, _repeated_products) if type(dense) is ndarray else None
    if products is None:
        return CountedCall(matrix, matrix, CallHistory(due=NEVER))
    history = products.history(matrix, program, dense.shape[1:])
    return CountedCall(matrix, matrix if history.stored is None else history.stored, history)


def _repeated_products(matrix: SparseTensor) -> RepeatedProducts | None:
    """Return a new count of the calls with a tensor in CSR; None if it is never converted, because it is
    small, borrows its arrays, was prepared, or has duplicates, which a conversion would add."""
    from gossamer.operator_calls.chosen_format import CHOICE

    # The model of costs is for values in which products are added.
    if matrix.value_dtype not in WIDE_DTYPES:
        return None
    if matrix.is_borrowed or CHOICE.find(matrix) or not is_format(matrix.description, "csr"):
        return None
    columns = indices_of(matrix.description.axes[-1])
    if columns is None or not columns.unique or matrix.nnz < MIN_NONZEROS:
        return None
    return RepeatedProducts()


def _history(matrix: SparseTensor, program: OperatorProgram, sizes: tuple[int, ...]) -> CallHistory:
    features = sizes[0] if len(sizes) == 1 else 1
    products = matrix.nnz * features
    # A product of parts cannot be interrupted between ranges of rows, and that of `spmm` with a vector is
    # one of `spmv`. Such calls are never due.
    is_counted = program.sums_rows and len(sizes) == program.dense_dimensions - 1
    if not is_counted or not products or is_made_in_ranges(products):
        return CallHistory(due=NEVER)
    return CallHistory(due=PRODUCTS_BEFORE_CHOICE // products + 1)


def _choice(matrix: SparseTensor, sizes: tuple[int, ...]) -> FormatChoice:
    """Return the choice among formats in which results are the same but for rounding."""
    from gossamer.operator_calls.row_order import properties_for
    from gossamer.resolve_target import machine_for
    from gossamer_tune import Workload, choose_format

    features = sizes[0] if sizes else None
    machine = machine_for(DEFAULT_TARGET)
    # The machine that runs the calls: such calls are for the default target only.
    workload = Workload(features, matrix.dtype.name, machine, get_num_threads())
    properties = properties_for(matrix, workload)
    return choose_format(properties, workload, calls=MANY_CALLS, adds_zeros=False)


def _paying_calls(choice: FormatChoice) -> int:
    """Return the number of calls that would have paid for the conversion."""
    gain = choice.csr.cycles - choice.chosen.cycles
    if gain <= 0:
        return NEVER
    return int((choice.chosen.conversion_cycles + COMPILE_CYCLES) / gain) + 1
