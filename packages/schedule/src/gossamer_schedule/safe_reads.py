"""Whether elements may be read wherever some iterators are in their domains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from gossamer_ir.build import ONE, add, in_range, index
from gossamer_ir.effects import READS, all_buffers
from gossamer_ir.nodes import (
    AnyBuffer,
    Axis,
    BlockIter,
    CompressedFixed,
    CompressedVaried,
    DenseFixed,
    DenseVaried,
    Expr,
    For,
    Function,
    Load,
    Node,
    Range,
    Search,
    SparseBuffer,
)
from gossamer_ir.offsets import length_of
from gossamer_ir.touches import touches
from gossamer_ir.walk import occurrences
from gossamer_schedule.knowledge import point_in


def is_safe(
    function: Function, reads: Iterable[Node], *, iters: Sequence[BlockIter], held: Iterable[Expr]
) -> bool:
    """Whether all loads of some expressions are proved in bounds for all values in the domains of the
    iterators for which the conditions hold, and so are the loads of the domains."""
    proof = _Proof(function)
    for found in iters:
        if not proof.is_safe(found.domain):
            return False
        proof.point.assume_domain(found)
    for condition in held:
        if not proof.is_safe(condition):
            return False
        proof.point.assume(condition)
    return all(proof.is_safe(found) for found in reads)


def is_safe_in(function: Function, expr: Node, loops: Iterable[For]) -> bool:
    """Whether all loads of an expression are proved in bounds wherever some loops run, which have read
    what their ranges are."""
    proof = _Proof(function)
    for loop in loops:
        proof.point.assume_loop(loop)
        proof.learn_read(loop)
    return proof.is_safe(expr)


class _Proof:
    """What is known, and the shapes of buffers."""

    def __init__(self, function: Function) -> None:
        self.point = point_in(function)
        self._axes = {axis.name: axis for axis in function.axes}
        self._buffers = {found.name: found for found in all_buffers(function)}
        self._by_handle = {found.handle: found for found in function.buffers}

    def learn_read(self, loop: For) -> None:
        """From here on, what the range of a loop is read from exists."""
        for found in touches((replace(loop, body=(), weight=None),)):
            indices = tuple(at for at in found.indices if not isinstance(at, Range))
            if found.is_certain and len(indices) == len(found.indices):
                extents = self._extents(self._buffers[found.buffer], indices)
                for at, extent in zip(indices, extents, strict=False):
                    for condition in in_range(at, extent):
                        self.point.assume(condition)

    def is_safe(self, expr: Node) -> bool:
        looks = occurrences(READS, expr)
        return all(map(self._is_in_bounds, looks))

    def _is_in_bounds(self, look: Load | Search) -> bool:
        """Whether an element exists, or all that is searched does."""
        indices = look.indices if isinstance(look, Load) else (*look.prefix, look.begin)
        extents = tuple(self._extents(self._buffers[look.buffer], indices))
        if len(extents) != len(indices):
            return False
        pairs = [*zip(indices, extents, strict=True)]
        if isinstance(look, Search):
            pairs[-1:] = [(at, add(extents[-1], ONE)) for at in (look.begin, look.end)]
        return all(self.point.is_in_range(at, extent) for at, extent in pairs)

    def _extents(self, buffer: AnyBuffer, indices: tuple[Expr, ...]) -> Iterator[Expr]:
        """How far each index may go, where that is known."""
        if not isinstance(buffer, SparseBuffer):
            yield from buffer.shape
            return
        known = dict(zip(buffer.axes, indices, strict=True))
        for name in buffer.axes:
            extent = self._fibre(self._axes[name], known)
            if extent is None:
                return
            is_last = name == buffer.axes[-1]
            yield add(extent, index(buffer.extra_storage)) if is_last else extent

    def _fibre(self, axis: Axis, positions: Mapping[str, Expr]) -> Expr | None:
        """The number of positions of an axis below some positions of its ancestors."""
        match axis:
            case DenseFixed():
                return axis.length
            case CompressedFixed():
                return axis.width
            case DenseVaried() | CompressedVaried():
                bounds = self._by_handle.get(axis.indptr)
                if not isinstance(bounds, SparseBuffer) or not positions.keys() >= {*bounds.axes}:
                    return None
                parents = tuple(positions[name] for name in bounds.axes)
                return length_of(Load(bounds.name, parents, bounds.dtype))
