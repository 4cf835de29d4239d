"""Whether elements may be read wherever some iterators are in their domains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gossamer_ir.build import ONE, add, index, sub, widen
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
    Search,
    SparseBuffer,
)
from gossamer_ir.walk import walk
from gossamer_schedule.knowledge import Knowledge
from gossamer_schedule.resolve import all_buffers


def is_safe(
    function: Function, reads: Iterable[Node], *, iters: Sequence[BlockIter], held: Iterable[Expr]
) -> bool:
    """Whether all loads of some expressions are proved in bounds for all values in the domains of the
    iterators for which the conditions hold, and so are the loads of the domains."""
    proof = _Proof(function)
    for found in iters:
        if not proof.is_safe(found.domain):
            return False
        proof.known.learn_range(found.var, found.domain.start, found.domain.extent)
    for condition in held:
        if not proof.is_safe(condition):
            return False
        proof.known.learn(condition)
    return all(proof.is_safe(found) for found in reads)


def is_safe_in(function: Function, expr: Node, loops: Iterable[For]) -> bool:
    """Whether all loads of an expression are proved in bounds wherever some loops run."""
    proof = _Proof(function)
    for loop in loops:
        proof.known.learn_loop(loop)
    return proof.is_safe(expr)


class _Proof:
    """What is known, and the shapes of buffers."""

    def __init__(self, function: Function) -> None:
        self.known = Knowledge(function)
        self._axes = {axis.name: axis for axis in function.axes}
        self._buffers = {found.name: found for found in all_buffers(function)}
        self._by_handle = {found.handle: found for found in function.buffers}

    def is_safe(self, expr: Node) -> bool:
        loads = [found for found in walk(expr) if isinstance(found, (Load, Search))]
        return all(isinstance(found, Load) and self._is_in_bounds(found) for found in loads)

    def _is_in_bounds(self, load: Load) -> bool:
        extents = tuple(self._extents(self._buffers[load.buffer], load.indices))
        return len(extents) == len(load.indices) and all(
            self.known.proves_in_range(at, extent)
            for at, extent in zip(load.indices, extents, strict=True)
        )

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
                after = (*parents[:-1], add(parents[-1], ONE))
                begin = widen(Load(bounds.name, parents, bounds.dtype))
                return sub(widen(Load(bounds.name, after, bounds.dtype)), begin)
