"""Checks that no iteration of one loop accesses an element that an iteration of another one writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from gossamer_ir.analysis.accesses.linear_form import LinearForm
from gossamer_ir.analysis.statements.atomic_accumulation import is_atomic, shared_names
from gossamer_ir.arith.offsets import load_of_index
from gossamer_ir.core.build import integer_value
from gossamer_ir.dependence.access_forms import AccessForm, access_forms
from gossamer_ir.dependence.disjointness import coordinate_of, without_changing
from gossamer_ir.errors import ScheduleError
from gossamer_ir.facts.fact_index import fact_index
from gossamer_ir.nodes import For, Function, Load, Relation, SortedSegments, Store
from gossamer_ir.traversal.buffer_uses import buffers_written, outer_writes
from gossamer_ir.traversal.walk import stmts
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.used_buffers import conflicting_buffers
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.errors import schedule_error


def atomic_buffers(loop: For) -> frozenset[str]:
    """Return the buffers that the iterations of a loop accumulate atomically."""
    if not is_atomic(loop):
        return frozenset()
    names = shared_names(loop)
    return frozenset(outer_writes(loop.body) if names is None else names)


def jointly_atomic_buffers(loop: For) -> frozenset[str]:
    """Return the buffers that the iterations of a loop accumulate atomically, without those whose updates
    are all in a loop inside that is annotated for them, too: these are atomic without the loop around."""
    inside = [inner for inner in stmts(loop.body) if isinstance(inner, For) and is_atomic(inner)]
    return frozenset(
        name for name in atomic_buffers(loop) if not _is_updated_only_in(loop, name, inside)
    )


def _is_updated_only_in(loop: For, buffer_name: str, inside: Sequence[For]) -> bool:
    covered = [inner for inner in inside if buffer_name in atomic_buffers(inner)]
    stores = {id(store) for inner in covered for store in _stores_to(inner, buffer_name)}
    return all(id(store) in stores for store in _stores_to(loop, buffer_name))


def _stores_to(loop: For, buffer_name: str) -> Iterator[Store]:
    for stmt in stmts(loop.body):
        if isinstance(stmt, Store) and stmt.buffer == buffer_name:
            yield stmt


def require_independent(first: Cursor, second: Cursor) -> None:
    """Refuse two loops if an iteration of one may access an element that an iteration of the other writes.

    Elements are different if their indices in one dimension are loaded from two arrays that are declared
    disjoint, or are different numbers. What both accumulate atomically may be shared.

    Raises `.race` and `.not_proved`.
    """
    one, other = first.node, second.node
    shared = atomic_buffers(one) & atomic_buffers(other)
    either = jointly_atomic_buffers(one) | jointly_atomic_buffers(other)
    changing = buffers_written(one.body) | buffers_written(other.body)
    # Sorted, so that the same program always gives the same error.
    for buffer in sorted(conflicting_buffers((one,), (other,)) - shared):
        if buffer in either:
            # The fused loop would make the plain updates of the other one atomic, too.
            raise _error("not_proved", first, second, buffer, "both loops accumulate it atomically")
        pairs = (
            (a, b)
            for a in _forms(first, buffer, changing)
            for b in _forms(second, buffer, changing)
            if a.is_store or b.is_store
        )
        for a, b in pairs:
            if not _are_disjoint(a, b, first.function):
                code = "race" if _is_same_element(a, b) else "not_proved"
                needs = "the index arrays that select its elements are declared disjoint"
                raise _error(code, first, second, buffer, needs)


def _error(code: str, first: Cursor, second: Cursor, buffer_name: str, needs: str) -> ScheduleError:
    if code == "race":
        return schedule_error(
            f"{first.primitive}.race",
            f"Loops '{first.node.var}' and '{second.node.var}' access one element of "
            f"'{buffer_name}', and one of "
            "them writes it.",
            hint="Leave one of the loops out.",
            place=second.place,
        )
    return schedule_error(
        f"{first.primitive}.{code}",
        f"Cannot prove that loops '{first.node.var}' and '{second.node.var}' access different elements "
        f"of '{buffer_name}'.",
        needs=needs,
        place=second.place,
    )


def _forms(cursor: Cursor, buffer_name: str, changing: Set[str]) -> list[AccessForm]:
    # The variable of a loop that runs once is a number.
    values = {loop.var: loop.start for loop in cursor.loops if integer_value(loop.extent) == 1}
    values |= values_at(cursor)
    forms = access_forms(cursor.node.body, {buffer_name}, values=values, function=cursor.function)
    return [without_changing(form, changing) for form in forms]


def _are_disjoint(one: AccessForm, other: AccessForm, function: Function) -> bool:
    """Return whether two accesses are to different elements in all iterations of the loops around each."""
    return any(
        _are_different(a, b, function) for a, b in zip(one.indices, other.indices, strict=True)
    )


def _are_different(one: LinearForm | None, other: LinearForm | None, function: Function) -> bool:
    numbers = _number(one), _number(other)
    # Two constants decide, whatever the loops do.
    if numbers[0] is not None and numbers[1] is not None:
        return numbers[0] != numbers[1]
    first, second = _load(one), _load(other)
    return first is not None and second is not None and _from_disjoint(first, second, function)


def _number(form: LinearForm | None) -> int | None:
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
    has_rows = any(fact.indptr is None for fact in sorted_segments)
    numbers: Sequence[int | None] = [integer_value(index) for index in load.indices[:-1]]
    segment = tuple(number for number in numbers if number is not None)
    return segment if has_rows and len(segment) == len(numbers) else None


def _is_same_element(one: AccessForm, other: AccessForm) -> bool:
    """Return whether two accesses are to one element, whatever the iterations are."""
    numbers = [(_number(a), _number(b)) for a, b in zip(one.indices, other.indices, strict=True)]
    return all(a is not None and a == b for a, b in numbers)
