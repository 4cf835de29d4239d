"""What is stated about index arrays, and what axes promise of theirs, as far as nothing changes it."""

from __future__ import annotations

from collections.abc import Iterator

from gossamer_ir.build import ONE, ZERO, add
from gossamer_ir.lasting import lasting_facts, written_by
from gossamer_ir.nodes import (
    CompressedFixed,
    CompressedVaried,
    DenseFixed,
    DenseVaried,
    Fact,
    Function,
    HasValue,
    InRange,
    Monotone,
    SortedSegments,
)
from gossamer_ir.remembered import remembered


def known_facts(function: Function) -> tuple[Fact, ...]:
    """What is stated or promised by axes of the buffers that a function does not write."""
    return (*lasting_facts(function), *_axis_facts(function))


@remembered
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


@remembered
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
