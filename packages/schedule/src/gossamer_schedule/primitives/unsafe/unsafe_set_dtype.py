"""`unsafe_set_dtype`: change the dtype of an allocated buffer, and so the results."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from gossamer_ir.analysis.statements.reductions import reads_buffer
from gossamer_ir.core.constants import constant, value_of
from gossamer_ir.core.dtypes import EXACT_INTEGER, SCALARS, DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.errors import ArgumentError
from gossamer_ir.facts.fact_kinds import buffers_of_fact
from gossamer_ir.nodes import (
    AnyBuffer,
    Binary,
    Cast,
    Combine,
    Const,
    Expr,
    Function,
    Load,
    Node,
    Search,
    SparseBuffer,
    Store,
)
from gossamer_ir.traversal.rewrite import map_children
from gossamer_ir.traversal.walk import collect, stmts
from gossamer_schedule.cursor.allocations import require_allocated, with_buffer
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_buffer
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.choices import expected_words
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.definition.unsafe_mark import marked_unsafe
from gossamer_schedule.errors import schedule_error

# Other operations: computed in the old dtype, and the result is converted.
_WIDENED_OPS = ("add", "sub", "mul", "min", "max")
"""Operations that are computed in the new dtype if their result is stored."""


@primitive(stages=LOOP_STAGES)
def unsafe_set_dtype(
    root: Cursor[Function], buffer: str, *, dtype: str, function: str | None = None
) -> Change:
    """Change the dtype of a buffer that the function allocates.

    Stored values are converted to `dtype`, and loaded values back to the old dtype. If a sum, difference,
    product, minimum or maximum is stored, it is computed in the new dtype if it uses elements of the
    buffer or the new dtype is wider. A float64 accumulator of products of float32, for example, rounds to
    float32 only once, at the end. Results change, so the function is annotated `unsafe`. The result's name
    is that of the buffer.

    Raises `ScheduleError` with a code `schedule.unsafe_set_dtype.*`:

    * `.dtype`: not a numeric dtype, or it cannot represent the fill value
    * `.parameter`: the caller passes the buffer
    * `.other_access`: a declared reducer combines its elements, a search reads it, or a fact is about it

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
    old = find_buffer(root, buffer=buffer)

    # First, because the caller decides on the dtype of a parameter, whatever the function does with it.
    require_allocated(old, root)
    _require_numbers(old, dtype)
    _require_plain(root.function, buffer)

    new = _buffer_with_dtype(old, dtype)
    converter = _DtypeConverter(buffer, dtype, is_wider=_is_wider(dtype, old.dtype))
    body = tuple(converter.visit(stmt) for stmt in root.function.body)

    changed = with_buffer(replace(root.function, body=body), new)
    return marked_unsafe(Change(root.with_function(changed), (buffer,)))


def _require_numbers(old: AnyBuffer, dtype: str) -> None:
    """Refuse handles and bools: sums and minima are computed in the new dtype, and these have none."""
    numbers = [name for name in SCALARS if DType(name).is_integer or DType(name).is_float]
    for name in (dtype, old.dtype):
        if name not in numbers:
            raise schedule_error(
                "unsafe_set_dtype.dtype",
                f"Buffer '{old.name}' cannot be changed from '{old.dtype}' to '{dtype}'.",
                hint=expected_words(name, numbers),
            )


# Other statements: none applies a declared reducer but `Combine`.
def _require_plain(function: Function, buffer_name: str) -> None:
    """Refuse a buffer that is not only loaded and stored: other uses cannot be converted."""
    combined = {
        store.buffer
        for stmt in stmts(function.body)
        if isinstance(stmt, Combine)
        for store in stmt.stores
    }
    searched = {search.buffer for search in collect(Search, *function.body)}
    stated = {name for fact in function.facts for name in buffers_of_fact(fact)}
    for names, what in (
        (combined, "combined by a declared reducer"),
        (searched, "searched"),
        (stated, "the subject of a fact"),
    ):
        if buffer_name in names:
            raise schedule_error(
                "unsafe_set_dtype.other_access",
                f"Buffer '{buffer_name}' is {what}, which requires its present dtype.",
            )


def _buffer_with_dtype(old: AnyBuffer, dtype: str) -> AnyBuffer:
    if not isinstance(old, SparseBuffer) or old.fill is None:
        return replace(old, dtype=dtype)
    try:
        return replace(old, dtype=dtype, fill=constant(value_of(old.fill), dtype))
    except ArgumentError as error:
        raise schedule_error(
            "unsafe_set_dtype.dtype",
            f"The fill value {old.fill.text} of buffer '{old.name}' cannot be represented as '{dtype}'.",
            hint="Choose a dtype that can represent it.",
        ) from error


def _is_wider(dtype: str, old: str) -> bool:
    """Return whether a dtype has more bits than another one of the same kind."""
    new, before = DType.parse(dtype), DType.parse(old)
    is_alike = new.kind == before.kind or (new.is_float and before.is_float)
    return is_alike and new.bits > before.bits


class _DtypeConverter:
    """Rewrites the accesses of a buffer for a new dtype."""

    def __init__(self, buffer_name: str, dtype: str, *, is_wider: bool) -> None:
        self._buffer = buffer_name
        self._dtype = dtype
        self._is_wider = is_wider

    def visit(self, node: Node) -> Any:
        """Return the node with stored values converted to the new dtype, and loaded values converted back."""
        if isinstance(node, Store) and node.buffer == self._buffer:
            return replace(map_children(node, self.visit), value=self._in_new_dtype(node.value))
        if isinstance(node, Load) and node.buffer == self._buffer:
            return Cast(node.dtype, self._load(node))
        return map_children(node, self.visit)

    # Other expressions: their operands are visited.
    def _in_new_dtype(self, value: Expr) -> Expr:
        """Return a stored value, computed in the new dtype as far as its operations allow."""
        # Its elements have the new dtype already; a conversion there and back would round them.
        if isinstance(value, Load) and value.buffer == self._buffer:
            return self._load(value)
        # In a narrower dtype operands would be rounded before the operation, so others keep theirs.
        is_widened = self._is_wider or reads_buffer(value, self._buffer)
        if isinstance(value, Binary) and value.op in _WIDENED_OPS and is_widened:
            return Binary(value.op, self._in_new_dtype(value.lhs), self._in_new_dtype(value.rhs))
        return self._convert(value)

    def _load(self, load: Load) -> Load:
        converted = map_children(load, self.visit)
        passthrough = None if load.passthrough is None else self._in_new_dtype(load.passthrough)
        return replace(converted, dtype=self._with_lanes_of(load.dtype), passthrough=passthrough)

    # Other expressions: their operands are visited.
    def _convert(self, value: Expr) -> Expr:
        """Return a value of another dtype, converted to the new one."""
        if isinstance(value, Const):
            number = value_of(value)
            # It stays a constant, such as the identity in an init. Negative ones do not fit unsigned dtypes.
            if float(number).is_integer() and 0 <= number <= EXACT_INTEGER:
                return constant(number, self._dtype)
        converted: Expr = self.visit(value)
        dtype = self._with_lanes_of(dtype_of(value))
        if isinstance(converted, Cast) and dtype_of(converted.value) == dtype:
            return converted.value  # a loaded value that is stored again keeps the new dtype
        return Cast(dtype, converted)

    def _with_lanes_of(self, dtype: str) -> str:
        """Return the new dtype with as many lanes as another dtype."""
        return DType.parse(dtype).with_scalar(self._dtype).text
