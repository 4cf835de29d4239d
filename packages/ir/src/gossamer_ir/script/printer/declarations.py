"""Writes the declarations of axes, buffers, relations and facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gossamer_ir.nodes import (
    AnyBuffer,
    Axis,
    BitCounts,
    BitmaskVaried,
    Buffer,
    CompressedFixed,
    CompressedVaried,
    DenseFixed,
    DenseVaried,
    Distinct,
    Expr,
    HasValue,
    InRange,
    Monotone,
    PaddedSlots,
    ProductSteps,
    Reducer,
    Relation,
    SortedSegments,
    SparseBuffer,
)
from gossamer_ir.script.printer.expressions import string_literal, write_expr, write_index
from gossamer_ir.script.printer.writer import Writer


def write_each(
    w: Writer, field: str, declarations: Iterable[Any], write: Callable[[Writer, Any], None]
) -> None:
    """Write the items of a field of a function or format, one per line."""
    for number, declaration in enumerate(declarations):
        with w.at(field, number):
            write(w, declaration)
        w.end_line()


def write_axis(w: Writer, axis: Axis) -> None:
    """Write `I = T.sp.dense_fixed(m)`."""
    w.put(f"{axis.name} = T.sp.")
    AXIS_PRINTERS[type(axis)](w, axis)


def write_buffer(w: Writer, buffer: AnyBuffer) -> None:
    """Write the declaration of a buffer of a function."""
    if isinstance(buffer, SparseBuffer):
        return _write_sparse(w, buffer)
    return write_dense(w, buffer, "decl_buffer" if buffer.handle is None else "match_buffer")


def write_dense(w: Writer, buffer: Buffer, function: str) -> None:
    """Write `X = T.match_buffer(x, (n,), "float32")` or an allocation."""
    w.put(f"{buffer.name} = T.{function}(")
    w.put("" if buffer.handle is None else f"{buffer.handle}, ")
    w.put("(")
    for number, size in w.separate_by_commas(buffer.shape):
        write_index(w, size, "shape", item=number)
    # Python takes parentheses around one item for a tuple only with a comma.
    w.put(",)" if len(buffer.shape) == 1 else ")")
    w.put(f', "{buffer.dtype}"')
    w.put(_scope_text(buffer) + ")")


def write_reducer(w: Writer, reducer: Reducer) -> None:
    """Write `argmax = T.comm_reducer(lambda i, x, j, y: (...), (T.int64(-1), ...))`."""
    names = ", ".join(var.name for var in (*reducer.lhs, *reducer.rhs))
    w.put(f"{reducer.name} = T.comm_reducer(lambda {names}: (")
    # A literal that has the expected dtype is written without it: the parser expects the same.
    for number, (result, var) in w.separate_by_commas(
        zip(reducer.results, reducer.lhs, strict=True)
    ):
        write_expr(w, result, "results", item=number, expected=var.dtype)
    comma = "," if len(reducer.results) == 1 else ""
    w.put(f"{comma}), (")
    for number, identity in w.separate_by_commas(reducer.identity):
        write_expr(w, identity, "identity", item=number)
    w.put(f"{comma}))")


def write_fact(w: Writer, fact: Any) -> None:
    """Write `T.assume(monotone(X))`."""
    w.put("T.assume(")
    FACT_PRINTERS[type(fact)](w, fact)
    w.put(")")


def write_relation(w: Writer, relation: Relation) -> None:
    """Write `T.sp.assume(subset(J1, J2))`."""
    w.put(f"T.sp.assume({relation.kind}({relation.left}, {relation.right}))")


def _write_sparse(w: Writer, buffer: SparseBuffer) -> None:
    function = "alloc_buffer(" if buffer.handle is None else f"match_buffer({buffer.handle}, "
    comma = "," if len(buffer.axes) == 1 else ""
    w.put(f"{buffer.name} = T.sp.{function}({', '.join(buffer.axes)}{comma})")
    w.put(f', "{buffer.dtype}"{_scope_text(buffer)}')
    if buffer.extra_storage:
        w.put(f", extra_storage={buffer.extra_storage}")
    if buffer.fill is not None:
        w.put(", default=")
        write_expr(w, buffer.fill, "fill", expected=buffer.dtype)
    if buffer.offsets is not None:
        w.put(f", offsets={buffer.offsets}")
    w.put(")")


def _scope_text(buffer: AnyBuffer) -> str:
    return "" if buffer.scope == "global" else f", scope={string_literal(buffer.scope)}"


def _write_dense_fixed(w: Writer, axis: DenseFixed) -> None:
    w.put("dense_fixed(")
    write_index(w, axis.length, "length")
    w.put(")" if axis.parent is None else f", parent={axis.parent})")


def _write_dense_varied(w: Writer, axis: DenseVaried) -> None:
    w.put(f"dense_varied({axis.parent}, ")
    _write_sizes(w, axis.length, "nnz", axis.nnz)
    w.put(f', {axis.indptr}, "{axis.indptr_dtype}")')


def _write_compressed_fixed(w: Writer, axis: CompressedFixed) -> None:
    w.put(f"compressed_fixed({axis.parent}, ")
    _write_sizes(w, axis.length, "width", axis.width)
    w.put(f', {axis.indices}, "{axis.indices_dtype}"{_flags(axis, is_padded=True)})')


def _write_compressed_varied(w: Writer, axis: CompressedVaried) -> None:
    w.put(f"compressed_varied({axis.parent}, ")
    _write_sizes(w, axis.length, "nnz", axis.nnz)
    w.put(f", ({axis.indptr}, {axis.indices}), ")
    if axis.indptr_dtype == axis.indices_dtype:
        w.put(f'"{axis.indptr_dtype}"')
    else:
        w.put(f'indptr_dtype="{axis.indptr_dtype}", indices_dtype="{axis.indices_dtype}"')
    w.put(f"{_flags(axis, is_padded=False)})")


def _write_bitmask_varied(w: Writer, axis: BitmaskVaried) -> None:
    w.put(f"bitmask_varied({axis.parent}, ")
    _write_sizes(w, axis.length, "nnz", axis.nnz)
    w.put(f", ({axis.indptr}, {axis.words}), ")
    w.put(f'indptr_dtype="{axis.indptr_dtype}", words_dtype="{axis.words_dtype}")')


def _write_sizes(w: Writer, length: Expr, name: str, second: Expr | None) -> None:
    w.put("" if second is None else "(")
    write_index(w, length, "length")
    if second is not None:
        w.put(", ")
        write_index(w, second, name)
        w.put(")")


def _flags(axis: CompressedFixed | CompressedVaried, *, is_padded: bool) -> str:
    # Defaults are left out. Fibers of one width mostly have unused slots, others mostly none.
    flags = (("sorted", True), ("unique", True), ("padded", is_padded))
    return "".join(
        f", {name}={getattr(axis, name)}" for name, usual in flags if getattr(axis, name) != usual
    )


def _write_relation(w: Writer, fact: Relation) -> None:
    w.put(f"{fact.kind}({fact.left}, {fact.right})")


def _write_with_indices(
    w: Writer, fact: InRange | HasValue, function: str, fields: tuple[str, str]
) -> None:
    """Print a fact about a buffer with two expressions."""
    w.put(f"{function}({fact.buffer}")
    for field in fields:
        w.put(", ")
        write_index(w, getattr(fact, field), field)
    w.put(")")


def _write_in_range(w: Writer, fact: InRange) -> None:
    _write_with_indices(w, fact, "in_range", ("low", "high"))


def _write_monotone(w: Writer, fact: Monotone) -> None:
    w.put(f"monotone({fact.buffer})")


def _write_distinct(w: Writer, fact: Distinct) -> None:
    w.put(f"distinct({fact.buffer})")


def _write_known_value(w: Writer, fact: HasValue) -> None:
    _write_with_indices(w, fact, "has_value", ("index", "value"))


def _write_product_steps(w: Writer, fact: ProductSteps) -> None:
    w.put(f"product_steps({fact.buffer}, {fact.left}, {fact.right})")


def _write_sorted_segments(w: Writer, fact: SortedSegments) -> None:
    indptr = "" if fact.indptr is None else f", {fact.indptr}"
    w.put(f"sorted_segments({fact.buffer}{indptr}, unique={fact.unique})")


def _write_bit_counts(w: Writer, fact: BitCounts) -> None:
    w.put(f"bit_counts({fact.buffer}, {fact.indptr}, ")
    write_index(w, fact.length, "length")
    w.put(")")


def _write_padded_slots(w: Writer, fact: PaddedSlots) -> None:
    w.put(f"padded_slots({fact.buffer}, ")
    write_index(w, fact.length, "length")
    w.put(")")


AXIS_PRINTERS: Mapping[type, Callable[[Writer, Any], None]] = {
    DenseFixed: _write_dense_fixed,
    DenseVaried: _write_dense_varied,
    CompressedFixed: _write_compressed_fixed,
    CompressedVaried: _write_compressed_varied,
    BitmaskVaried: _write_bitmask_varied,
}
FACT_PRINTERS: Mapping[type, Callable[[Writer, Any], None]] = {
    Relation: _write_relation,
    InRange: _write_in_range,
    Monotone: _write_monotone,
    HasValue: _write_known_value,
    ProductSteps: _write_product_steps,
    SortedSegments: _write_sorted_segments,
    Distinct: _write_distinct,
    BitCounts: _write_bit_counts,
    PaddedSlots: _write_padded_slots,
}
