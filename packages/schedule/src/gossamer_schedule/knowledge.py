"""What may be relied on all through a function: what nothing in it changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gossamer_ir.build import ONE, ZERO, add, index_var
from gossamer_ir.lasting import lasting_facts, written_by
from gossamer_ir.magnitudes import magnitudes_of
from gossamer_ir.nodes import (
    BlockIter,
    Compare,
    CompressedFixed,
    CompressedVaried,
    DenseFixed,
    DenseVaried,
    Expr,
    Fact,
    For,
    Function,
    HasValue,
    InRange,
    Monotone,
    SortedSegments,
    Stmt,
    Store,
)
from gossamer_ir.prove import Prover
from gossamer_ir.walk import statements
from gossamer_schedule.accesses import mentioned


def known_facts(function: Function) -> tuple[Fact, ...]:
    """What is stated or promised by axes of the buffers that a function does not write."""
    return (*lasting_facts(function), *_axis_facts(function))


def coordinate_facts(function: Function) -> tuple[Fact, ...]:
    """What is known of coordinates, for `is_injective`: what is stated, and at the position stage that
    those of a fibre are sorted and unique, where their axes are."""
    return (*lasting_facts(function), *_fibre_facts(function))


def _fibre_facts(function: Function) -> Iterator[Fact]:
    names = _unchanged(function)
    for axis in function.axes:
        match axis:
            case CompressedVaried(sorted=True, unique=True, padded=False):
                indptr, indices = names.get(axis.indptr), names.get(axis.indices)
                if indptr is not None and indices is not None:
                    yield SortedSegments(indices, indptr, unique=True)
            case CompressedFixed(sorted=True, unique=True, padded=False):
                indices = names.get(axis.indices)
                if indices is not None:
                    yield SortedSegments(indices, None, unique=True)


def _unchanged(function: Function) -> dict[str | None, str]:
    """The buffers of arrays that the function does not write, by handle."""
    changing = written_by(function)
    return {found.handle: found.name for found in function.buffers if found.handle not in changing}


def stored(body: Iterable[Stmt]) -> set[str]:
    """The buffers that statements store to, those that they allocate, too."""
    return {found.buffer for found in statements(body) if isinstance(found, Store)}


class Knowledge(Prover):
    """A prover that takes no notice of what reads a buffer that the function writes, nor of what may wrap
    around: proofs are about unbounded integers."""

    def __init__(self, function: Function) -> None:
        super().__init__(known_facts(function))
        self._changing = stored(function.body)
        self._magnitudes = magnitudes_of(function)

    def learn_range(self, var: str, start: Expr, extent: Expr) -> None:
        """From here on, start <= var < start + extent holds."""
        if self._is_told(add(start, extent)):
            self.assume_range(var, start, extent)

    def learn_loop(self, loop: For) -> None:
        """From here on, a loop runs."""
        self.learn_range(loop.var, loop.start, loop.extent)

    def learn_iterator(self, item: BlockIter) -> None:
        """From here on, an iterator of a block is in its domain and has its value."""
        self.learn_range(item.var, item.domain.start, item.domain.extent)
        self.learn(Compare("eq", index_var(item.var), item.value))

    def learn(self, condition: Expr) -> None:
        """From here on, a condition holds."""
        if self._is_told(condition):
            self.assume(condition)

    def _is_told(self, expr: Expr) -> bool:
        """Whether an expression keeps its value, which is that of unbounded integers."""
        return not mentioned((expr,)) & self._changing and self.is_exact(expr)

    def is_exact(self, expr: Expr) -> bool:
        """Whether the value of an expression is that of unbounded integers."""
        return self._magnitudes.is_exact(expr)

    def proves(self, condition: Expr) -> bool:
        """Whether a comparison of machine integers, or a combination of such, is proved."""
        return self.is_exact(condition) and super().proves(condition)

    def proves_in_range(self, expr: Expr, extent: Expr) -> bool:
        """Whether 0 <= expr < extent is proved; the index may wrap around on its way."""
        is_known = self._magnitudes.is_sound(expr) and self.is_exact(extent)
        return is_known and super().proves_in_range(expr, extent)


def order_facts(function: Function) -> tuple[Fact, ...]:
    """What is known of the order of positions and coordinates: what is stated, and what axes promise."""
    return (*known_facts(function), *_fibre_facts(function))


def _ends(axis: DenseVaried | CompressedVaried, indptr: str, function: Function) -> Iterator[Fact]:
    """Where the elements of an axis begin and end, whose parent is not below another axis itself: offsets
    then have one index."""
    parent = next(found for found in function.axes if found.name == axis.parent)
    if isinstance(parent, DenseFixed) and parent.parent is None:
        yield HasValue(indptr, ZERO, ZERO)
        if axis.nnz is not None:
            yield HasValue(indptr, parent.length, axis.nnz)


def _axis_facts(function: Function) -> Iterator[Fact]:
    """What the axes promise of their index buffers, where nothing is written there."""
    names = _unchanged(function)
    for axis in function.axes:
        if isinstance(axis, (DenseVaried, CompressedVaried)) and axis.indptr in names:
            yield Monotone(names[axis.indptr])
            yield from _ends(axis, names[axis.indptr], function)
        if isinstance(axis, (CompressedFixed, CompressedVaried)) and axis.indices in names:
            high = add(axis.length, ONE) if axis.padded else axis.length
            yield InRange(names[axis.indices], ZERO, high)
