"""Check facts about large index arrays with a compiled kernel.

The kernel is only a fast path. If it does not find that all facts hold, `fact_errors.require_facts` decides
and reports the first violation.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, Union, get_args

import msgspec
import numpy as np

from gossamer_backend.arguments.array_checks import address
from gossamer_backend.arguments.size_equations import Array, Scalars, evaluate_size
from gossamer_backend.call.abi import Workspace
from gossamer_backend.compiled_checks.check_program import ArrayTest, check_module
from gossamer_ir.errors import PluginError, UnsupportedError
from gossamer_ir.interchange.kernel_abi import NOT_GUARDED, OK
from gossamer_ir.nodes import (
    Distinct,
    Fact,
    HasValue,
    InRange,
    Module,
    Monotone,
    PaddedSlots,
    ProductSteps,
    SortedSegments,
)
from gossamer_ir.support.index_arrays import MAX_LIST_LENGTH, first_wrong_product, has_value
from gossamer_ir.traversal.fact_index import FactIndex, stated_fact_index
from gossamer_ir.traversal.fact_kinds import subject_of

if TYPE_CHECKING:
    from gossamer_backend.call.kernel import Kernel

MAX_NUMPY_ELEMENTS = 65_536
"""The total number of elements up to which NumPy is faster than preparing a kernel."""

CompileNamed: TypeAlias = "Callable[[bytes, Callable[[], Module]], Kernel]"

_Tests: TypeAlias = tuple[ArrayTest, ...]
_Local: TypeAlias = Union[InRange, Monotone, SortedSegments, PaddedSlots, Distinct]
"""A fact about one buffer."""
_CHECKED: tuple[type[Any], ...] = (*get_args(_Local), HasValue, ProductSteps)
"""The types of facts that are checked here. Any other, such as a relation, is left to `require_facts`: the
result must not be True because a fact was ignored."""
_Layout: TypeAlias = "tuple[str, np.dtype[Any], int]"
"""A buffer, the dtype of its array and its number of dimensions."""


class GeneratedCheck:
    """A `FactChecker` with a kernel for each combination of dtypes and tests. `compile` makes the kernels
    from a name of the combination and a function that returns the module.

    Returns False for arrays of at most `max_numpy_elements` elements together, and if the kernel cannot be
    compiled for the target.

    >>> from gossamer_ir.core.build import index
    >>> def compile(name, program):
    ...     raise PluginError("plugin.failed", "There is nothing to compile with.")
    >>> check = GeneratedCheck(compile)
    >>> check((InRange("X", index(0), index(9)),), {}, {"X": np.arange(5)})  # left to NumPy
    False
    """

    def __init__(
        self, compile: CompileNamed, *, max_numpy_elements: int = MAX_NUMPY_ELEMENTS
    ) -> None:
        self._compile = compile
        self._max_numpy_elements = max_numpy_elements
        self._kernels: dict[_Tests, Kernel | None] = {}

    def __call__(
        self, facts: Sequence[Fact], scalars: Scalars, arrays: Mapping[str, Array]
    ) -> bool:
        if not all(isinstance(fact, _CHECKED) for fact in facts):
            return False
        read = {name: arrays[name] for name in map(subject_of, facts)}
        if sum(array.size for array in read.values()) <= self._max_numpy_elements:
            return False
        several: tuple[Any, ...] = tuple(fact for fact in facts if type(fact) not in _SINGLE)
        single = (fact for fact in facts if type(fact) in _SINGLE)
        if not all(_SINGLE[type(fact)](fact, scalars, arrays) for fact in single):
            return False
        if not several:
            return True
        # The kernel is given bare addresses, so it cannot handle strides.
        return all(map(_is_plain, read.values())) and self._all_pass(several, scalars, arrays)

    def _all_pass(
        self, facts: tuple[_Local, ...], scalars: Scalars, arrays: Mapping[str, Array]
    ) -> bool:
        """Run the kernel for these facts; False also if there is none."""
        read = {fact.buffer: arrays[fact.buffer] for fact in facts}
        checks = _buffer_checks(
            facts, tuple((name, array.dtype, array.ndim) for name, array in read.items())
        )
        if checks is None:
            return False
        kernel = self._kernel(tuple(check.test for check in checks))
        values = [_test_arguments(check, scalars, arrays) for check in checks]
        if kernel is None or None in values:
            return False
        return _kernel_accepts(kernel, [value for group in values if group for value in group])

    def _kernel(self, tests: _Tests) -> Kernel | None:
        # None is kept as well: a target that cannot compile the test is not asked again.
        if tests not in self._kernels:
            self._kernels[tests] = self._compiled(tests)
        return self._kernels[tests]

    def _compiled(self, tests: _Tests) -> Kernel | None:
        try:
            name = msgspec.json.encode(("check_module", tests))
            return self._compile(name, partial(check_module, tests))
        except (UnsupportedError, PluginError):
            return None


def _is_plain(array: Array) -> bool:
    return array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative


def _are_product_steps(fact: ProductSteps, _scalars: Scalars, arrays: Mapping[str, Array]) -> bool:
    operands = (arrays[name] for name in (fact.buffer, fact.left, fact.right))
    return first_wrong_product(*operands) is None


def _has_value(fact: HasValue, scalars: Scalars, arrays: Mapping[str, Array]) -> bool:
    at, value = (evaluate_size(size, scalars, arrays=arrays) for size in (fact.index, fact.value))
    return has_value(arrays[fact.buffer], at=at, value=value)


_SINGLE: Mapping[type[Any], Callable[[Any, Scalars, Mapping[str, Array]], bool]] = {
    HasValue: _has_value,
    ProductSteps: _are_product_steps,
}
"""Checks of facts that NumPy checks as fast as a kernel."""


def _kernel_accepts(kernel: Kernel, values: Sequence[Array | int]) -> bool:
    arguments = [
        ctypes.c_int64(value) if isinstance(value, int) else ctypes.c_void_p(address(value))
        for value in values
    ]
    # Not asked whether to stop: a check takes less time than a process needs to end.
    threads, parallel, _ = kernel.parallelism()
    workspace = Workspace(threads, parallel, NOT_GUARDED)
    status: int = kernel.function(*arguments, ctypes.byref(workspace))
    return status == OK


class _BufferCheck(NamedTuple):
    """The test of one buffer, and the facts that give its parameters."""

    buffer: str
    test: ArrayTest
    ranges: tuple[InRange, ...]
    pad: PaddedSlots | None
    offsets: str | None


class _Order(NamedTuple):
    """An order of values: within segments, or within rows if there is no `indptr`."""

    indptr: str | None
    unique: bool


@lru_cache(maxsize=256)
def _buffer_checks(
    facts: tuple[_Local, ...], layouts: tuple[_Layout, ...]
) -> tuple[_BufferCheck, ...] | None:
    """Return a check for each buffer, offsets first; None if one cannot be tested."""
    index = stated_fact_index(facts)
    checks: list[_BufferCheck] = []
    for layout in sorted(layouts, key=lambda layout: _is_cut(layout[0], index)):
        check = _buffer_check(index, layout, before=checks)
        if check is None:
            return None
        checks.append(check)
    return tuple(checks)


def _is_cut(buffer: str, index: FactIndex) -> bool:
    return any(fact.indptr is not None for fact in index.about(buffer, SortedSegments))


def _buffer_check(
    index: FactIndex, layout: _Layout, *, before: Sequence[_BufferCheck]
) -> _BufferCheck | None:
    """Return the check for a buffer, or None. At most one order can be tested; if it is within segments,
    their offsets must have been tested before."""
    name, dtype, dimensions = layout
    segments = index.about(name, SortedSegments)
    orders = [
        *(_Order(None, unique=False) for _ in index.about(name, Monotone)),
        *(_Order(fact.indptr, fact.unique) for fact in segments),
    ]
    ranges = index.about(name, InRange)
    is_distinct = index.holds(name, Distinct)
    is_testable = dtype.kind in "iu" and not (is_distinct and dtype == np.uint64)
    if not is_testable or len(orders) > 1:
        return None
    # Repeated values of padding matter only where values must differ.
    has_unique = is_distinct or any(order.unique for order in orders)
    pad = next(iter(index.about(name, PaddedSlots)), None) if has_unique else None
    test = ArrayTest(
        dtype.name, in_range=bool(ranges), padded=pad is not None, distinct=is_distinct
    )
    check = _BufferCheck(name, test, ranges, pad, None)
    return _with_order_test(check, orders[0], dimensions, before=before) if orders else check


def _with_order_test(
    check: _BufferCheck, order: _Order, dimensions: int, *, before: Sequence[_BufferCheck]
) -> _BufferCheck | None:
    """Return the check with the test of an order; None if that is within segments whose offsets were not
    tested before."""
    kind: Literal["unique", "sorted"] = "unique" if order.unique else "sorted"
    offsets = order.indptr
    if offsets is None:
        in_rows = msgspec.structs.replace(check.test, order=kind, in_rows=dimensions > 1)
        return check._replace(test=in_rows)
    tested = [
        number
        for number, earlier in enumerate(before)
        if earlier.buffer == offsets and earlier.test.order and not earlier.test.in_segments
    ]
    # Unchecked offsets could make the kernel read out of bounds.
    if not tested:
        return None
    in_segments = msgspec.structs.replace(check.test, order=kind, offsets=tested[0])
    return check._replace(test=in_segments, offsets=offsets)


def _test_arguments(
    check: _BufferCheck, scalars: Scalars, arrays: Mapping[str, Array]
) -> list[Array | int] | None:
    """Return the arguments of a test in the order of its parameters; None if they cannot be passed."""
    array = arrays[check.buffer]
    if check.offsets is not None and not _are_offsets_of(arrays[check.offsets], array):
        return None
    values: list[Array | int] = [array, array.size]
    for arguments_of in _ARGUMENTS:
        arguments = arguments_of(check, scalars, arrays)
        if arguments is None:
            return None
        values += arguments
    return values


def _of_range(
    check: _BufferCheck, scalars: Scalars, arrays: Mapping[str, Array]
) -> tuple[int, ...] | None:
    """Return the least and the greatest value allowed; None if there is no such value."""
    if not check.ranges:
        return ()
    limits = np.iinfo(check.test.dtype)
    low = max(evaluate_size(fact.low, scalars, arrays=arrays) for fact in check.ranges)
    last = min(evaluate_size(fact.high, scalars, arrays=arrays) for fact in check.ranges) - 1
    low, last = max(low, int(limits.min)), min(last, int(limits.max), 2**63 - 1)
    return (low, last) if low <= last else None


def _of_rows(check: _BufferCheck, scalars: Scalars, arrays: Mapping[str, Array]) -> tuple[int, ...]:
    """Return the length of a row."""
    return arrays[check.buffer].shape[-1:] if check.test.in_rows else ()


def _of_distinct(
    check: _BufferCheck, scalars: Scalars, arrays: Mapping[str, Array]
) -> tuple[int, ...] | None:
    """Return the span of the values; None if it is too large for a list of marks."""
    return _value_range(arrays[check.buffer]) if check.test.distinct else ()


def _of_pad(
    check: _BufferCheck, scalars: Scalars, arrays: Mapping[str, Array]
) -> tuple[int, ...] | None:
    """Return the value of padding; None if the dtype of the array cannot represent it."""
    if check.pad is None:
        return ()
    limits = np.iinfo(check.test.dtype)
    pad = evaluate_size(check.pad.length, scalars, arrays=arrays)
    return (pad,) if limits.min <= pad <= limits.max else None


_Arguments: TypeAlias = Callable[
    [_BufferCheck, Scalars, Mapping[str, Array]], Union[tuple[int, ...], None]
]
_ARGUMENTS: tuple[_Arguments, ...] = (_of_range, _of_rows, _of_distinct, _of_pad)
"""The arguments of each property that a test can have, in the order of its parameters. A property that is
not tested has none."""


def _value_range(array: Array) -> tuple[int, int] | None:
    """Return the least value of an array and the size of its range of values; None if the range is too large
    for a list of marks."""
    if not array.size:
        return 0, 1
    least, most = int(array.min()), int(array.max())
    return None if most - least >= MAX_LIST_LENGTH * array.size else (least, most - least + 1)


def _are_offsets_of(offsets: Array, array: Array) -> bool:
    """Return whether offsets start at 0 and end at the size of an array."""
    flat = offsets.reshape(-1)
    return flat.size > 0 and (int(flat[0]), int(flat[-1])) == (0, array.size)
