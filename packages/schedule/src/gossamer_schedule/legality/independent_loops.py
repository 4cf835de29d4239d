"""Checks that no iteration of one loop accesses an element that an iteration of another one writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from gossamer_ir.analysis.statements.atomic_accumulation import is_atomic, shared_names
from gossamer_ir.core.build import integer_value
from gossamer_ir.dependence.access_forms import AccessForm, access_forms
from gossamer_ir.dependence.different_elements import are_different_elements, constant_index
from gossamer_ir.dependence.disjointness import without_changing
from gossamer_ir.errors import ScheduleError
from gossamer_ir.nodes import For, Store
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


def require_independent(first: Cursor[For], second: Cursor[For]) -> None:
    """Refuse two loops if an iteration of one may access an element that an iteration of the other writes.

    Elements are different if their indices in one dimension are loaded from two arrays that are declared
    disjoint, or are different numbers. Elements that both accumulate atomically may be shared.

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
            if not are_different_elements(a, b, first.function):
                code = "race" if _is_same_element(a, b) else "not_proved"
                needs = "the index arrays that select its elements are declared disjoint"
                raise _error(code, first, second, buffer, needs)


def _error(
    code: str, first: Cursor[For], second: Cursor[For], buffer_name: str, needs: str
) -> ScheduleError:
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


def _forms(cursor: Cursor[For], buffer_name: str, changing: Set[str]) -> list[AccessForm]:
    # The variable of a loop that runs once is a number.
    values = {loop.var: loop.start for loop in cursor.loops if integer_value(loop.extent) == 1}
    values |= values_at(cursor)
    forms = access_forms(cursor.node.body, {buffer_name}, values=values, function=cursor.function)
    return [without_changing(form, changing) for form in forms]


def _is_same_element(one: AccessForm, other: AccessForm) -> bool:
    """Return whether two accesses are to one element, whatever the iterations are."""
    numbers = [
        (constant_index(a), constant_index(b))
        for a, b in zip(one.indices, other.indices, strict=True)
    ]
    return all(a is not None and a == b for a, b in numbers)
