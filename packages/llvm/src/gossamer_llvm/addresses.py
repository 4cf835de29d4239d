"""From a buffer and its indices to one address, or to a vector of addresses."""

from __future__ import annotations

from typing import NamedTuple

from gossamer_ir.build import integer_value
from gossamer_ir.dtypes import DType
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Expr, Ramp
from gossamer_llvm.folding import add, broadcast, index_constant, mul
from gossamer_llvm.frame import Frame, Place, Value
from gossamer_llvm.types import memory_type


class Address(NamedTuple):
    """Where an access goes. `offset` counts elements, those of the first lane where `lanes` follow
    each other; `is_scattered` where the pointer is a vector of addresses."""

    place: Place
    pointer: str
    offset: Value
    is_scattered: bool


def emit_address(
    frame: Frame, buffer: str, indices: tuple[Expr, ...], *, is_certain: bool
) -> Address:
    """`is_certain` says that the access happens, hence that the address lies in the buffer."""
    place = frame.buffers[buffer]
    last = indices[-1] if indices else None
    is_run = isinstance(last, Ramp) and integer_value(last.stride) == 1
    if isinstance(last, Ramp) and is_run:
        values = [*map(frame.expr, indices[:-1]), frame.expr(last.base)]
        _require_vector_dtype(frame, last)
    else:
        values = [frame.expr(index) for index in indices]
    is_scattered = bool(values) and DType.parse(values[-1].dtype).is_vector
    offset = _flatten(frame, place, values, flags=" nsw" if is_certain else "")
    kind = " inbounds" if is_certain else ""
    pointer = _step(frame, place, offset, kind)
    return Address(place, pointer, offset, is_scattered)


def _flatten(frame: Frame, place: Place, values: list[Value], *, flags: str) -> Value:
    """Row-major. An element that is accessed has an offset below the buffer's size: no overflow."""
    if not values:
        return index_constant(0)
    offset = values[0]
    for extent, value in zip(place.buffer.shape[1:], values[1:], strict=True):
        offset = mul(frame, offset, frame.expr(extent), flags=flags)
        if value.dtype != offset.dtype:
            offset = broadcast(frame, offset, value.dtype)
        offset = add(frame, offset, value, flags=flags)
    return offset


def _step(frame: Frame, place: Place, offset: Value, kind: str) -> str:
    if offset.text == "0":
        return place.address
    element = memory_type(place.buffer.dtype)
    return frame.text.value(f"getelementptr{kind} {element}, ptr {place.address}, {offset.typed}")


def _require_vector_dtype(frame: Frame, ramp: Ramp) -> None:
    lanes = DType("int64", ramp.lanes.count, ramp.lanes.scalable)
    if lanes.scalable and lanes.lanes == 1:
        raise UnsupportedError("llvm.lanes", "A vector of vscale lanes is not lowered yet.")
    frame.unit.require_dtype(lanes.text)
