"""Translates loads, stores and searches."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from gossamer_ir.core.expression_kinds import has_lanes
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interpret.expressions.coordinates import coordinate_load, coordinate_store
from gossamer_ir.interpret.frame import Eval, Exec, Frame, Initialized
from gossamer_ir.interpret.memory.views import View, ViewIndices
from gossamer_ir.interpret.translator import Translator
from gossamer_ir.nodes import Expr, Load, Search, SparseBuffer, Store
from gossamer_support.arrays import Array


def translate_load(node: Load, translator: Translator) -> Eval:
    """Return a load as a function of the frame."""
    read = _read(node, translator)
    predicate, passthrough = (
        translator.optional(node.predicate),
        translator.optional(node.passthrough),
    )
    # With vector indices the predicate is a mask, which `_gather` applies lane by lane.
    if predicate is None or passthrough is None or _is_wide(node.indices):
        return read
    return lambda frame: read(frame) if predicate(frame) else passthrough(frame)


def translate_store(node: Store, translator: Translator) -> Exec:
    """Return a store as a function of the frame."""
    write = _write(node, translator)
    predicate = translator.optional(node.predicate)
    if predicate is None or _is_wide(node.indices):
        return write

    def run(frame: Frame) -> None:
        if predicate(frame):
            write(frame)

    return run


def search(node: Search, translator: Translator) -> Eval:
    """Return a search as a function of the frame: a linear scan, as the language defines it."""
    name, kind = node.buffer, node.kind
    prefix, value = translator.exprs(node.prefix), translator.expr(node.value)
    begin, end = translator.expr(node.begin), translator.expr(node.end)

    def run(frame: Frame) -> Any:
        first, last = int(begin(frame)), int(end(frame))
        elements = frame.views[name].window(prefix(frame), first, last)
        # A scan, not a bisection: it is right for any order of the elements, so that it can check searches.
        hits = _HITS[kind](elements, int(value(frame))).nonzero()[0]
        miss = -1 if kind == "exact" else max(first, last)
        return np.int64(first + hits[0] if hits.size else miss)

    return run


def is_by_coordinate(buffer_name: str, translator: Translator) -> bool:
    """Return whether the indices of a buffer are coordinates rather than positions."""
    return translator.stage == "coordinate" and isinstance(
        translator.buffers[buffer_name], SparseBuffer
    )


def _read(node: Load, translator: Translator) -> Eval:
    if is_by_coordinate(node.buffer, translator):
        return coordinate_load(node, translator)
    if _is_wide(node.indices):
        return _gather(node, translator)
    name, indices = node.buffer, translator.exprs(node.indices)
    return lambda frame: frame.views[name].read(indices(frame))


def _gather(node: Load, translator: Translator) -> Eval:
    _require_ordinary(node.buffer, translator)
    name, indices = node.buffer, translator.exprs(node.indices)
    predicate, passthrough = (
        translator.optional(node.predicate),
        translator.optional(node.passthrough),
    )
    if predicate is None or passthrough is None:
        return lambda frame: frame.views[name].gather(indices(frame), None, None)
    return lambda frame: frame.views[name].gather(
        indices(frame), predicate(frame), passthrough(frame)
    )


def _write(node: Store, translator: Translator) -> Exec:
    if is_by_coordinate(node.buffer, translator):
        return coordinate_store(node, translator)
    if _is_wide(node.indices):
        return _scatter(node, translator)
    name, indices, value = node.buffer, translator.exprs(node.indices), translator.expr(node.value)

    def run(frame: Frame) -> None:
        view, where = frame.views[name], indices(frame)
        # In an init, several points may select one element; only the first stores to it.
        if frame.initialized is None or frame.initialized.is_new(view, where):
            view.write(where, value(frame))

    return run


def _scatter(node: Store, translator: Translator) -> Exec:
    _require_ordinary(node.buffer, translator)
    name, indices, value = node.buffer, translator.exprs(node.indices), translator.expr(node.value)
    predicate = translator.optional(node.predicate)

    def run(frame: Frame) -> None:
        view, where = frame.views[name], indices(frame)
        mask = predicate(frame) if predicate is not None else None
        if frame.initialized is not None:
            mask = _new_lanes(frame.initialized, view, where, mask)
        view.scatter(where, value(frame), mask)

    return run


def _new_lanes(done: Initialized, view: View, indices: ViewIndices, mask: Array | None) -> Array:
    """Return a mask of the lanes whose elements no earlier run of the init has written."""
    *outer, lanes = indices
    are_new = [
        (mask is None or bool(mask[number])) and done.is_new(view, (*outer, lane))
        for number, lane in enumerate(lanes)
    ]
    return np.array(are_new)


def _require_ordinary(buffer_name: str, translator: Translator) -> None:
    if isinstance(translator.buffers[buffer_name], SparseBuffer):
        raise UnsupportedError(
            "interpret.vector_index",
            f"The sparse buffer '{buffer_name}' is accessed with a vector index.",
            hint="Vectors are allowed at the stages loop and flat.",
        )


def _is_wide(indices: tuple[Expr, ...]) -> bool:
    return any(map(has_lanes, indices))


_HITS: dict[str, Callable[[Any, int], Any]] = {
    "exact": operator.eq,
    "lower": operator.ge,
    "upper": operator.gt,
}
