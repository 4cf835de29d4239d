"""`unsafe_set_dtype`: a buffer of the function holds elements of another dtype."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from gossamer_ir.analysis.invariants import NAMING_FIELDS
from gossamer_ir.analysis.reductions import reads
from gossamer_ir.core.build import dtype_of
from gossamer_ir.core.constants import constant, value_of
from gossamer_ir.core.dtypes import SCALARS, DType
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import (
    AnyBuffer,
    Binary,
    Cast,
    Combine,
    Const,
    Expr,
    Function,
    Load,
    Module,
    Search,
    SparseBuffer,
    Store,
)  # fmt: skip
from gossamer_ir.traversal.walk import collect, map_children, statements
from gossamer_schedule.cursor.allocations import require_allocated, with_buffer
from gossamer_schedule.cursor.resolve import LOOP_STAGES, find_buffer, find_function, require_stage
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.result import Result
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.recorded import step
from gossamer_schedule.step.unsafe_mark import marked_result

_NAME = "unsafe_set_dtype"
_WIDE = ("add", "sub", "mul", "min", "max")
"""Operations of what is stored that are done in the new dtype."""
_EXACT = 256
"""Integers up to this are the same in every dtype of floats."""


@primitive
def unsafe_set_dtype(
    module: Module, buffer: str, *, dtype: str, function: str | None = None
) -> Result:
    """Gives a buffer that the function allocates another dtype: what is stored there is converted to it,
    and what is read is converted back. Sums, differences, products, minima and maxima that are stored there
    are computed in the new dtype where they are of its elements, and all of them where it is wider: a
    float64 accumulator of products of float32 rounds to float32 once, at the end. Results change, so the
    function is annotated `unsafe`.

    Raises `ScheduleError`: `schedule.unsafe_set_dtype.dtype` (not numbers, or the fill value is not one of
    the dtype), `.parameter` (the buffer is the caller's), `.other_access` (a declared reducer combines its
    elements, a search looks in it, or a fact is about it), `.no_buffer`, `.no_function`, `.stage`.

    >>> from gossamer_testkit.examples import ROW_SUM
    >>> from gossamer_schedule.primitives.buffers.cache_write import cache_write
    >>> from gossamer_testkit.show import body_text
    >>> cached = cache_write(ROW_SUM, "row_sum", buffer="Y", scope="local").module
    >>> print(body_text(cached))
    for i in T.serial(m):
        for j in T.serial(indptr_data[i + 1] - indptr_data[i]):
            with T.block("row_sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    Y_local[vi] = 0.0
                Y_local[vi] = Y_local[vi] + A[indptr_data[vi] + vj]
    for i_c in T.serial(m):
        with T.block("row_sum_Y_local"):
            vi_c = T.axis.spatial(m, i_c)
            Y[vi_c] = Y_local[vi_c]
    >>> print(body_text(unsafe_set_dtype(cached, "Y_local", dtype="float64").module))
    for i in T.serial(m):
        for j in T.serial(indptr_data[i + 1] - indptr_data[i]):
            with T.block("row_sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    Y_local[vi] = 0.0
                Y_local[vi] = Y_local[vi] + T.float64(A[indptr_data[vi] + vj])
    for i_c in T.serial(m):
        with T.block("row_sum_Y_local"):
            vi_c = T.axis.spatial(m, i_c)
            Y[vi_c] = T.float32(Y_local[vi_c])
    """
    require_stage(module, _NAME, stages=LOOP_STAGES)
    root = find_function(module, _NAME, function=function)
    old = find_buffer(root, buffer=buffer)

    require_allocated(old, root)
    _require_numbers(old, dtype)
    _require_plain(root.function, buffer)

    new = _of_dtype(old, dtype)
    conversion = _Conversion(buffer, dtype, is_wider=_is_wider(dtype, old.dtype))
    body = tuple(conversion.visit(found) for found in root.function.body)

    changed = with_buffer(replace(root.function, body=body), new)
    rewritten = root.with_function(changed).module

    taken = step(buffer=buffer, dtype=dtype, function=function)
    return marked_result(Result(rewritten, (buffer,), Step(_NAME, taken)))


def _require_numbers(old: AnyBuffer, dtype: str) -> None:
    numbers = [name for name, (kind, _) in SCALARS.items() if kind not in ("bool", "handle")]
    if dtype not in numbers or old.dtype not in numbers:
        raise schedule_error(
            f"{_NAME}.dtype",
            f"Buffer '{old.name}' of {old.dtype} cannot be one of {dtype}.",
            hint=f"Expected one of {', '.join(numbers)}.",
        )


def _require_plain(function: Function, buffer: str) -> None:
    """Stores and loads are all that may be said of the buffer."""
    combined = {
        store.buffer
        for found in statements(function.body)
        if isinstance(found, Combine)
        for store in found.stores
    }
    searched = {found.buffer for found in collect(Search, *function.body)}
    told = {getattr(fact, field, None) for fact in function.facts for field in NAMING_FIELDS}
    for names, what in (
        (combined, "combined by a declared reducer"),
        (searched, "searched"),
        (told, "the subject of a fact"),
    ):
        if buffer in names:
            raise schedule_error(
                f"{_NAME}.other_access",
                f"Buffer '{buffer}' is {what}, which takes its elements to be of the dtype they have.",
            )


def _of_dtype(old: AnyBuffer, dtype: str) -> AnyBuffer:
    if not isinstance(old, SparseBuffer) or old.fill is None:
        return replace(old, dtype=dtype)
    try:
        return replace(old, dtype=dtype, fill=constant(value_of(old.fill), dtype))
    except ArgumentError as error:
        raise schedule_error(
            f"{_NAME}.dtype",
            f"The fill value {old.fill.text} of buffer '{old.name}' is not a {dtype}.",
            hint="Choose a dtype that holds it.",
        ) from error


def _is_wider(dtype: str, old: str) -> bool:
    """Whether a dtype has more bits of the same kind than another one."""
    new, before = DType.parse(dtype), DType.parse(old)
    is_alike = new.kind == before.kind or (new.is_float and before.is_float)
    return is_alike and new.bits > before.bits


class _Conversion:
    """Statements that use a buffer as one of another dtype."""

    def __init__(self, buffer: str, dtype: str, *, is_wider: bool) -> None:
        self._buffer = buffer
        self._dtype = dtype
        self._is_wider = is_wider

    def visit(self, node: Any) -> Any:
        """The node with what is stored converted, and what is read converted back."""
        if isinstance(node, Store) and node.buffer == self._buffer:
            return replace(map_children(node, self.visit), value=self._wide(node.value))
        if isinstance(node, Load) and node.buffer == self._buffer:
            return Cast(node.dtype, self._load(node))
        return map_children(node, self.visit)

    def _wide(self, value: Expr) -> Expr:
        """A value in the new dtype."""
        if isinstance(value, Load) and value.buffer == self._buffer:
            return self._load(value)
        is_computed = self._is_wider or reads(value, self._buffer)
        if isinstance(value, Binary) and value.op in _WIDE and is_computed:
            return Binary(value.op, self._wide(value.lhs), self._wide(value.rhs))
        return self._converted(value)

    def _load(self, load: Load) -> Load:
        made = map_children(load, self.visit)
        other = None if load.passthrough is None else self._wide(load.passthrough)
        return replace(made, dtype=self._like(load.dtype), passthrough=other)

    def _converted(self, value: Expr) -> Expr:
        if isinstance(value, Const):
            number = value_of(value)
            if float(number).is_integer() and 0 <= number <= _EXACT:
                return constant(number, self._dtype)
        made: Expr = self.visit(value)
        wanted = self._like(dtype_of(value))
        if isinstance(made, Cast) and dtype_of(made.value) == wanted:
            return made.value  # what is read and stored again as it is
        return Cast(wanted, made)

    def _like(self, dtype: str) -> str:
        """The new dtype, with as many lanes."""
        return DType.parse(dtype).with_scalar(self._dtype).text
