"""Translates loads, stores and searches."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from gossamer_ir.core.build import dtype_of
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interpret.coordinates import coordinate_load, coordinate_store
from gossamer_ir.interpret.frame import Eval, Exec, Frame, Initialised
from gossamer_ir.interpret.scope import Scope
from gossamer_ir.interpret.values import Array, is_vector
from gossamer_ir.interpret.views import Indices, View
from gossamer_ir.nodes import Expr, Load, Search, SparseBuffer, Store


def load(node: Load, scope: Scope) -> Eval:
    """A load as a function of the frame."""
    read = _read(node, scope)
    predicate, passthrough = scope.optional(node.predicate), scope.optional(node.passthrough)
    if predicate is None or passthrough is None or _is_wide(node.indices):
        return read
    return lambda frame: read(frame) if predicate(frame) else passthrough(frame)


def store(node: Store, scope: Scope) -> Exec:
    """A store as a function of the frame."""
    write = _write(node, scope)
    predicate = scope.optional(node.predicate)
    if predicate is None or _is_wide(node.indices):
        return write

    def run(frame: Frame) -> None:
        if predicate(frame):
            write(frame)

    return run


def search(node: Search, scope: Scope) -> Eval:
    """A search as a function of the frame: a linear scan, as the language defines it."""
    name, kind = node.buffer, node.kind
    prefix, value = scope.exprs(node.prefix), scope.expr(node.value)
    begin, end = scope.expr(node.begin), scope.expr(node.end)

    def run(frame: Frame) -> Any:
        first, last = int(begin(frame)), int(end(frame))
        elements = frame.views[name].window(prefix(frame), first, last)
        found = _HITS[kind](elements, int(value(frame))).nonzero()[0]
        miss = -1 if kind == "exact" else max(first, last)
        return np.int64(first + found[0] if found.size else miss)

    return run


def is_by_coordinate(buffer: str, scope: Scope) -> bool:
    """True if the indices of a buffer are coordinates rather than positions."""
    return scope.stage == "coordinate" and isinstance(scope.buffers[buffer], SparseBuffer)


def _read(node: Load, scope: Scope) -> Eval:
    if is_by_coordinate(node.buffer, scope):
        return coordinate_load(node, scope)
    if _is_wide(node.indices):
        return _gather(node, scope)
    name, indices = node.buffer, scope.exprs(node.indices)
    return lambda frame: frame.views[name].read(indices(frame))


def _gather(node: Load, scope: Scope) -> Eval:
    _require_ordinary(node.buffer, scope)
    name, indices = node.buffer, scope.exprs(node.indices)
    predicate, passthrough = scope.optional(node.predicate), scope.optional(node.passthrough)
    if predicate is None or passthrough is None:
        return lambda frame: frame.views[name].gather(indices(frame), None, None)
    return lambda frame: frame.views[name].gather(
        indices(frame), predicate(frame), passthrough(frame)
    )


def _write(node: Store, scope: Scope) -> Exec:
    if is_by_coordinate(node.buffer, scope):
        return coordinate_store(node, scope)
    if _is_wide(node.indices):
        return _scatter(node, scope)
    name, indices, value = node.buffer, scope.exprs(node.indices), scope.expr(node.value)

    def run(frame: Frame) -> None:
        view, where = frame.views[name], indices(frame)
        if frame.initialised is None or frame.initialised.is_new(view, where):
            view.write(where, value(frame))

    return run


def _scatter(node: Store, scope: Scope) -> Exec:
    _require_ordinary(node.buffer, scope)
    name, indices, value = node.buffer, scope.exprs(node.indices), scope.expr(node.value)
    predicate = scope.optional(node.predicate)

    def run(frame: Frame) -> None:
        view, where = frame.views[name], indices(frame)
        mask = predicate(frame) if predicate is not None else None
        if frame.initialised is not None:
            mask = _new_lanes(frame.initialised, view, where, mask)
        view.scatter(where, value(frame), mask)

    return run


def _new_lanes(done: Initialised, view: View, indices: Indices, mask: Array | None) -> Array:
    """A mask of the lanes whose elements no earlier run of the init has written."""
    *outer, lanes = indices
    return np.array([
        (mask is None or bool(mask[at])) and done.is_new(view, (*outer, lane))
        for at, lane in enumerate(lanes)
    ])  # fmt: skip


def _require_ordinary(buffer: str, scope: Scope) -> None:
    if isinstance(scope.buffers[buffer], SparseBuffer):
        raise UnsupportedError(
            "interpret.vector_index",
            f"The sparse buffer '{buffer}' is accessed with a vector index.",
            hint="Vectors are allowed at the stages loop and flat.",
        )


def _is_wide(indices: tuple[Expr, ...]) -> bool:
    return any(is_vector(dtype_of(index)) for index in indices)


_HITS: dict[str, Callable[[Any, int], Any]] = {
    "exact": operator.eq,
    "lower": operator.ge,
    "upper": operator.gt,
}
