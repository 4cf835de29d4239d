"""Checks of buffer accesses: loads, stores, prefetches, searches and regions."""

from __future__ import annotations

from gossamer_ir.nodes import SEARCH_KINDS, Expr, Load, Prefetch, Region, Search, Store
from gossamer_ir.verify.context import KnownBuffer, NodePlace, VerifyContext
from gossamer_ir.verify.expressions.check_expr import check_expr, check_size
from gossamer_ir.verify.expressions.dtype_queries import (
    is_integer,
    is_vector,
    parse_dtype,
    with_lanes_of,
)
from gossamer_support.message_texts import amount


def check_load(context: VerifyContext, node: Load, place: NodePlace) -> str | None:
    """Check that a load has the buffer's dtype with the lanes of its index; return that dtype."""
    buffer, lanes = _check_access(context, node, place)
    if parse_dtype(node.dtype) is None:
        context.report("verify.dtype.unknown", f"'{node.dtype}' is not a dtype of values.", place)
        return None
    if buffer is not None and node.dtype != with_lanes_of(buffer.dtype, lanes):
        context.report(
            "verify.load.dtype",
            f"A load from '{node.buffer}' has the dtype {node.dtype}; "
            f"expected {with_lanes_of(buffer.dtype, lanes)}.",
            place,
        )
    if (node.predicate is None) != (node.passthrough is None):
        context.report(
            "verify.predicate.passthrough",
            f"A load from '{node.buffer}' has only one of predicate and passthrough; expected both or "
            "neither.",
            place,
        )
    _check_predicate(context, node.predicate, node.dtype, place.down("predicate"))
    if node.passthrough is not None:
        dtype = check_expr(context, node.passthrough, place.down("passthrough"))
        if dtype not in (None, node.dtype):
            context.report(
                "verify.passthrough.dtype",
                f"The passthrough has the dtype {dtype}; expected {node.dtype}.",
                place.down("passthrough"),
            )
    return node.dtype


def check_store(context: VerifyContext, node: Store, place: NodePlace) -> None:
    """Check that the stored value has the buffer's dtype with the lanes of the index."""
    buffer, lanes = _check_access(context, node, place)
    dtype = check_expr(context, node.value, place.down("value"))
    if buffer is not None:
        expected = with_lanes_of(buffer.dtype, lanes)
        if dtype not in (None, expected):
            context.report(
                "verify.store.dtype",
                f"A store to '{node.buffer}' has a value of dtype {dtype}; expected {expected}.",
                place,
            )
        _check_predicate(context, node.predicate, expected, place.down("predicate"))
    if node.buffer in context.trusted:
        context.report(
            "verify.store.index",
            f"'{node.buffer}' cannot be written: it holds the structure of an axis, or facts about it "
            "are declared.",
            place,
        )


def check_prefetch(context: VerifyContext, node: Prefetch, place: NodePlace) -> None:
    """Check the address of a prefetch as that of a load."""
    _check_access(context, node, place)


def _check_predicate(
    context: VerifyContext, predicate: Expr | None, dtype: str, place: NodePlace
) -> None:
    if predicate is None:
        return
    predicate_dtype, expected = check_expr(context, predicate, place), with_lanes_of("bool", dtype)
    if predicate_dtype not in (None, expected):
        context.report(
            "verify.predicate.dtype",
            f"A predicate has the dtype {predicate_dtype}; expected {expected}.",
            place,
        )


def _check_access(
    context: VerifyContext, node: Load | Store | Prefetch, place: NodePlace
) -> tuple[KnownBuffer | None, str]:
    """Return the buffer (None if undefined), and int64 with the lanes of the access."""
    buffer = declared_buffer(context, node.buffer, place)
    if buffer is not None:
        _check_ndim(context, node.buffer, len(node.indices), buffer.ndim, place)
    lanes = "int64"
    for number, index in enumerate(node.indices):
        inner = place.down("indices", number)
        dtype = check_expr(context, index, inner)
        # A scalar index is the same for all lanes of the others.
        if dtype is None or dtype == "int64":
            continue
        if not is_vector(dtype) or not is_integer(dtype):
            context.report(
                "verify.index.dtype",
                f"An index of '{node.buffer}' has the dtype {dtype}; expected int64.",
                inner,
                hint="Widen it with Cast.",
            )
        elif is_vector(lanes) and with_lanes_of("int64", dtype) != with_lanes_of("int64", lanes):
            context.report(
                "verify.index.vector",
                f"Index {number} of '{node.buffer}' has the dtype {dtype}, but another index is {lanes}: "
                "all vectors must have the same lanes.",
                inner,
            )
        else:
            lanes = dtype
    return buffer, lanes


def declared_buffer(context: VerifyContext, name: str, place: NodePlace) -> KnownBuffer | None:
    """Return the buffer with this name, or None after reporting that it is not defined here."""
    buffer = context.buffers.get(name)
    if buffer is None:
        context.report(
            "verify.buffer.undefined",
            f"The buffer '{name}' is not defined here.",
            place,
            hint=f"Defined are: {', '.join(sorted(context.buffers)) or 'none'}.",
        )
    return buffer


def _check_ndim(
    context: VerifyContext, name: str, index_count: int, ndim: int, place: NodePlace
) -> None:
    if index_count != ndim:
        context.report(
            "verify.index.count",
            f"'{name}' has {amount(ndim, 'dimension')}, but {amount(index_count, 'index', 'indices')} "
            f"{'is' if index_count == 1 else 'are'} given.",
            place,
        )


def check_search(context: VerifyContext, node: Search, place: NodePlace) -> str:
    """Check that a search has int64 bounds, a value of int64 or the buffer's dtype, and as prefix all indices
    but the last. Returns int64, the dtype of the position found."""
    if node.kind not in SEARCH_KINDS:
        context.report(
            "verify.search.kind",
            f"'{node.kind}' is not a kind of search; expected one of {', '.join(SEARCH_KINDS)}.",
            place,
        )
    buffer = declared_buffer(context, node.buffer, place)
    if buffer is not None:
        _check_ndim(context, node.buffer, len(node.prefix) + 1, buffer.ndim, place)
    for number, index in enumerate(node.prefix):
        check_size(context, index, place.down("prefix", number))
    check_size(context, node.begin, place.down("begin"))
    check_size(context, node.end, place.down("end"))
    dtype = check_expr(context, node.value, place.down("value"))
    if buffer is not None and dtype not in (None, "int64", buffer.dtype):
        context.report(
            "verify.search.dtype",
            f"The search in '{node.buffer}' is for a value of dtype {dtype}; expected int64 or "
            f"{buffer.dtype}.",
            place.down("value"),
        )
    return "int64"


def check_region(context: VerifyContext, region: Region, place: NodePlace) -> None:
    """Check that a region has one int64 range for each dimension of its buffer."""
    buffer = declared_buffer(context, region.buffer, place)
    if buffer is not None:
        _check_ndim(context, region.buffer, len(region.ranges), buffer.ndim, place)
    for number, bounds in enumerate(region.ranges):
        inner = place.down("ranges", number)
        check_size(context, bounds.start, inner.down("start"))
        check_size(context, bounds.extent, inner.down("extent"))
