"""Whether an expression is proved to read nothing out of bounds, at the position or the loop stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gossamer_ir import build
from gossamer_ir.effects import READS
from gossamer_ir.nodes import (
    AnyBuffer,
    Buffer,
    Compare,
    CompressedFixed,
    CompressedVaried,
    DenseFixed,
    DenseVaried,
    Expr,
    Function,
    Load,
    Search,
)  # fmt: skip
from gossamer_ir.offsets import length_of
from gossamer_ir.program_point import ProgramPoint
from gossamer_ir.simplify import FALSE
from gossamer_ir.walk import walk


def reads_inside(value: Expr, function: Function, point: ProgramPoint) -> bool:
    """Whether every load and search in a value of a function is proved in bounds, conditions in the
    value apart; of sparse buffers those over a dense axis and perhaps one more."""
    return all(
        point.proves(condition) for node in walk(value) for condition in _bounds(node, function)
    )


def _bounds(node: object, function: Function) -> Iterator[Expr]:
    """What must hold for a read to be in bounds."""
    if not isinstance(node, READS):
        return
    indices = node.indices if isinstance(node, Load) else node.prefix
    extents = _extents(node.buffer, indices, function)
    if extents is None:
        yield FALSE
        return
    for index, extent in zip(indices, extents, strict=False):
        wide = build.widen(index)
        yield Compare("ge", wide, build.ZERO)
        yield Compare("lt", wide, extent)
    if isinstance(node, Search):
        yield Compare("ge", node.begin, build.ZERO)
        yield Compare("le", node.end, extents[-1])


def _extents(name: str, indices: tuple[Expr, ...], function: Function) -> tuple[Expr, ...] | None:
    """How far each index of a buffer goes, where that depends on the first only."""
    buffers = {buffer.name: buffer for buffer in function.buffers}
    buffer = buffers[name]
    if isinstance(buffer, Buffer):
        return buffer.shape
    match [axis for axis in function.axes if axis.name in buffer.axes]:
        case [DenseFixed() as axis]:
            return (build.add(axis.length, build.index(buffer.extra_storage)),)
        case [DenseFixed() as axis, CompressedFixed() as below]:
            return axis.length, below.width
        case [DenseFixed() as axis, (DenseVaried() | CompressedVaried()) as below]:
            fibre = _length_of(below, indices[0], buffers.values())
            return None if fibre is None else (axis.length, fibre)
    return None


def _length_of(
    axis: DenseVaried | CompressedVaried, parent: Expr, buffers: Iterable[AnyBuffer]
) -> Expr | None:
    """How many elements an axis has below an element of its parent."""
    for indptr in buffers:
        if indptr.handle == axis.indptr:
            return length_of(Load(indptr.name, (parent,), indptr.dtype))
    return None
