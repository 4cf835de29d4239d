"""Makes the views of a function's buffers: arrays of the caller, or new arrays filled with garbage."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from gossamer_ir.core.axis_kinds import index_handles
from gossamer_ir.core.build import fill_of
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interpret.frame import Frame, Views
from gossamer_ir.interpret.memory.layout import Layout
from gossamer_ir.interpret.memory.levels import Levels
from gossamer_ir.interpret.memory.values import constant_value, garbage_array, storage_type
from gossamer_ir.interpret.memory.views import View
from gossamer_ir.interpret.threads.watched_views import buffer_view
from gossamer_ir.interpret.translator import Translator
from gossamer_ir.nodes import AnyBuffer, Axis, Buffer, Expr, SparseBuffer
from gossamer_support.arrays import Array


class Layouts(dict[str, Layout]):
    """The layouts of a function's sparse buffers by name, made on first use."""

    def __init__(self, buffers: dict[str, AnyBuffer], levels: Levels) -> None:
        super().__init__()
        self._buffers = buffers
        self._levels = levels

    def __missing__(self, name: str) -> Layout:
        buffer = self._buffers[name]
        assert isinstance(buffer, SparseBuffer)
        layout = self[name] = Layout(buffer, self._levels)
        return layout


def open_buffers(frame: Frame, translator: Translator) -> None:
    """Make the levels, layouts and views of a frame."""

    def evaluate(expr: Expr) -> int:
        return int(translator.size(expr)(frame))

    def make(name: str) -> View:
        buffer = translator.buffers[name]
        if name in translator.written:
            _require_writeable(buffer, frame)
            _require_apart(buffer, translator.function.axes, frame)
        if isinstance(buffer, Buffer):
            sizes = tuple(max(0, evaluate(size)) for size in buffer.shape)
            array = _array(buffer, sizes, frame)
            return buffer_view(
                buffer, array, grid=frame.grid if name in translator.watched else None
            )
        return _sparse(buffer, frame, frame.layouts[name])

    frame.levels = Levels(translator.function.axes, arrays=frame.arrays, evaluate=evaluate)
    frame.layouts = Layouts(translator.buffers, frame.levels)
    frame.views = Views(make)
    for buffer in translator.function.buffers:
        frame.views[buffer.name]


def _require_writeable(buffer: AnyBuffer, frame: Frame) -> None:
    if buffer.handle is not None and not frame.arrays[buffer.handle].flags.writeable:
        raise ArgumentError(
            "interpret.read_only",
            f"The program stores to '{buffer.handle}', which is a read-only array.",
            hint="Pass a copy.",
        )


def _require_apart(buffer: AnyBuffer, axes: Iterable[Axis], frame: Frame) -> None:
    """Refuse a store to the memory of an index array: axes are read when the function begins, and the
    positions of elements are remembered."""
    if buffer.handle is None:
        return
    for handle in (handle for axis in axes for handle in index_handles(axis)):
        if np.may_share_memory(frame.arrays[buffer.handle], frame.arrays[handle]):
            raise ArgumentError(
                "interpret.overlap",
                f"The program stores to '{buffer.handle}', which shares memory with '{handle}', the index "
                "array of an axis.",
                hint="Pass a separate array.",
            )


def _sparse(buffer: SparseBuffer, frame: Frame, layout: Layout) -> View:
    shape = layout.fixed_shape
    if shape is not None:
        return View(buffer.name, _array(buffer, shape, frame), dtype=buffer.dtype)
    array = _array(buffer, (layout.size + buffer.extra_storage,), frame)
    fill = constant_value(fill_of(buffer))
    return View(buffer.name, array, dtype=buffer.dtype, locate=layout.locate, fill=fill)


def _array(buffer: AnyBuffer, shape: tuple[int, ...], frame: Frame) -> Array:
    if buffer.handle is None:
        return garbage_array(shape, buffer.dtype)
    array = frame.arrays[buffer.handle]
    if array.dtype != storage_type(buffer.dtype) or array.size != math.prod(shape):
        raise ArgumentError(
            "interpret.argument",
            f"'{buffer.handle}' is an array of {array.dtype} of shape {array.shape}; "
            f"expected {storage_type(buffer.dtype)} of shape {shape}.",
        )
    if array.shape == shape:
        return array
    if not array.flags.c_contiguous:
        raise ArgumentError(
            "interpret.argument",
            f"'{buffer.handle}' is neither of shape {shape} nor contiguous, but {array.shape}.",
        )
    return array.reshape(shape)
