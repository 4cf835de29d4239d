"""Accesses of different elements, whatever the iterations of the loops around them are."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_ir.analysis.accesses.linear_form import LinearForm
from gossamer_ir.arith.offsets import load_of_index
from gossamer_ir.core.build import integer_value
from gossamer_ir.dependence.access_forms import AccessForm
from gossamer_ir.dependence.disjointness import coordinate_of
from gossamer_ir.facts.fact_index import fact_index
from gossamer_ir.nodes import Function, Load, Relation, SortedSegments


def are_different_elements(one: AccessForm, other: AccessForm, function: Function) -> bool:
    """Return whether two accesses are to different elements in all iterations of the loops around each: their
    indices in one dimension are different numbers, or loaded from two arrays that are declared disjoint.

    >>> from gossamer_ir.analysis.accesses.linear_form import form_of
    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> forms = [AccessForm("Y", (form_of(at, {}, loops={}),), is_store=True) for at in (ZERO, ONE)]
    >>> are_different_elements(*forms, Function("f", (), ()))
    True
    >>> are_different_elements(forms[0], forms[0], Function("f", (), ()))
    False
    """
    return any(
        _are_different(a, b, function) for a, b in zip(one.indices, other.indices, strict=True)
    )


def _are_different(one: LinearForm | None, other: LinearForm | None, function: Function) -> bool:
    numbers = constant_index(one), constant_index(other)
    # Two constants decide, whatever the loops do.
    if numbers[0] is not None and numbers[1] is not None:
        return numbers[0] != numbers[1]
    first, second = _load(one), _load(other)
    return first is not None and second is not None and _from_disjoint(first, second, function)


def constant_index(form: LinearForm | None) -> int | None:
    """Return the constant that a form is."""
    if form is None or form.terms or form.base.terms:
        return None
    return form.base.constant


def _load(form: LinearForm | None) -> Load | None:
    coordinate = coordinate_of(form)
    return None if coordinate is None else load_of_index(coordinate)


def _from_disjoint(one: Load, other: Load, function: Function) -> bool:
    """Return whether two loads are from the same segment of arrays that are declared disjoint."""
    pair = {one.buffer, other.buffer}
    is_declared = any(
        fact.kind == "disjoint" and {fact.left, fact.right} == pair
        for fact in fact_index(function.facts).facts_of_type(Relation)
    )
    return (
        is_declared
        and all(_segment(load, function) is not None for load in (one, other))
        and _segment(one, function) == _segment(other, function)
    )


def _segment(load: Load, function: Function) -> tuple[int, ...] | None:
    """Return the number of the segment from which a load is, if it is known: the relation holds segment by
    segment. Segments of arrays without offsets are their rows."""
    sorted_segments = fact_index(function.facts).about(load.buffer, SortedSegments)
    segments_are_rows = any(fact.indptr is None for fact in sorted_segments)
    numbers: Sequence[int | None] = [integer_value(index) for index in load.indices[:-1]]
    segment = tuple(number for number in numbers if number is not None)
    return segment if segments_are_rows and len(segment) == len(numbers) else None
