"""Race checks: whether loop iterations access different elements, the condition for that, or a
counterexample of two iterations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import product

from gossamer_ir.analysis.accesses.buffer_accesses import accesses
from gossamer_ir.analysis.accesses.linear_form import LinearForm
from gossamer_ir.analysis.bounds.loops_by_name import loops_of, loops_within
from gossamer_ir.analysis.proofs.symbolic_bounds import constants_of
from gossamer_ir.arith.affine import expr_of, product_of
from gossamer_ir.core.build import add, index_var, mul
from gossamer_ir.core.statement_kinds import effects_of
from gossamer_ir.dependence.access_forms import AccessForm
from gossamer_ir.dependence.disjointness import Disjointness, disjointness, written_accesses
from gossamer_ir.errors import ScheduleError
from gossamer_ir.nodes import Expr, For, Function, Stmt
from gossamer_ir.traversal.buffer_uses import buffers_written
from gossamer_ir.traversal.substitute import substitute
from gossamer_schedule.cursor.cursor_at import Cursor, addressable_stmts
from gossamer_schedule.cursor.find import find_loop
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.errors import schedule_error, text_of
from gossamer_support.identity_cache import memoize_by_identity

_OTHER_SUFFIX = "_other"
_MAX_POINTS = 4096
"""The largest number of points that are tried to find two iterations that access one element. Such a pair
only makes the error more precise: without a proof, the loop is refused in any case."""


CONCURRENT_KINDS = ("parallel", "thread_binding", "vectorized")
"""The kinds of loops whose iterations run concurrently."""


def require_no_race_on_new(top: Cursor[Stmt], root: Cursor[Function], *, buffers: Set[str]) -> None:
    """Refuse new buffers that concurrent iterations of loops around a cursor would share.

    The loops are checked in `root`, the function with the buffers. Raises as `require_no_race`.
    """
    for loop in top.loops:
        if loop.kind in CONCURRENT_KINDS:
            around = find_loop(root, loop=loop.var)
            require_no_race(around, buffers=buffers)


@memoize_by_identity
def accesses_below(cursor: Cursor[For]) -> Mapping[str, Sequence[AccessForm]]:
    """Return the accesses of each buffer that the body of the loop at a cursor stores to."""
    return written_accesses(cursor.node.body, values=values_at(cursor), function=cursor.function)


def is_race_free(cursor: Cursor[For], buffer_name: str) -> bool:
    """Return whether different iterations of the loop at a cursor provably access different elements of a
    buffer that the loop writes."""
    # Index forms first: the order of accesses needs the prover.
    return _race_disjointness(cursor, buffer_name) == "disjoint" or are_iterations_apart(
        cursor, buffer_name
    )


def are_iterations_apart(cursor: Cursor[For], buffer_name: str) -> bool:
    """Return whether an order proves that iterations of the loop at a cursor access different elements of
    the buffer."""
    # Imported late: most loops need only the forms of their accesses.
    from gossamer_ir.dependence.ordered_accesses import are_apart

    return are_apart(
        list(accesses(cursor.node.body, values=values_at(cursor), buffers={buffer_name})),
        cursor.node,
        outer=cursor.loops,
        changing=buffers_written(cursor.node.body),
        function=cursor.function,
    )


def _race_disjointness(cursor: Cursor[For], buffer_name: str) -> Disjointness:
    loop = cursor.node
    varying = loops_within((loop,))
    return disjointness(
        loop.var, accesses_below(cursor)[buffer_name], varying=varying, function=cursor.function
    )


def require_no_race(cursor: Cursor[For], *, buffers: Set[str] | None = None) -> None:
    """Refuse the loop at a cursor unless different iterations provably access different elements of each
    buffer that the loop writes (of these `buffers`).

    Raises `.race` if two iterations access the same element, else `.not_proved`.
    """
    by_buffer = accesses_below(cursor)
    for buffer in by_buffer if buffers is None else buffers & by_buffer.keys():
        if not is_race_free(cursor, buffer):
            raise _race_error(cursor, buffer_name=buffer)


def _race_error(cursor: Cursor[For], *, buffer_name: str) -> ScheduleError:
    loop, accesses = cursor.node, accesses_below(cursor)[buffer_name]
    varying = loops_within((loop,))
    collision = collision_text(loop, accesses, loops=loops_of(cursor.function), varying=varying)
    # A proved race has a code of its own: "not proved" would suggest that a fact could help.
    if _race_disjointness(cursor, buffer_name) == "race" or collision is not None:
        return schedule_error(
            f"{cursor.primitive}.race",
            f"Different iterations of loop '{loop.var}' access the same elements of '{buffer_name}'"
            f"{f', {collision}' if collision else ''}, and one writes them.",
            hint="Choose a loop that selects the element.",
            place=cursor.place,
        )
    return schedule_error(
        f"{cursor.primitive}.not_proved",
        f"Cannot prove that different iterations of loop '{loop.var}' access different "
        f"elements of '{buffer_name}'.",
        needs=difference_text(loop.var, accesses, varying=varying),
        place=cursor.place,
    )


def difference_text(loop_name: str, accesses: Sequence[AccessForm], *, varying: Set[str]) -> str:
    """Return the condition that a store to a buffer and another access of it (else the store itself) are to
    different elements in different iterations of the loop."""
    store = next(access for access in accesses if access.is_store)
    other = next((access for access in accesses if access.indices != store.indices), store)
    renamed: dict[str, Expr] = {
        name: index_var(name + _OTHER_SUFFIX) for name in varying | {loop_name}
    }
    left, right = _element_text(store, {}), _element_text(other, renamed)
    return f"{left} != {right} wherever {loop_name} != {loop_name}{_OTHER_SUFFIX}"


def _element_text(access: AccessForm, renamed: Mapping[str, Expr]) -> str:
    if any(form is None for form in access.indices):
        return f"any element of {access.buffer}"
    texts = [text_of(substitute(_form_expr(form), renamed)) for form in access.indices if form]
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def _form_expr(form: LinearForm) -> Expr:
    terms = [mul(index_var(name), product_of(factor)) for name, factor in form.terms.items()]
    if form.base.terms or form.base.constant or not terms:
        terms.append(expr_of(form.base))
    total, *rest = terms
    for term in rest:
        total = add(total, term)
    return total


def collision_text(
    loop: For,
    accesses: Sequence[AccessForm],
    *,
    loops: Mapping[str, For],
    varying: Set[str],
) -> str | None:
    """Return two iterations of the loop that access one element, at least one of them storing to it.

    It is None if there are none among the points that are tried, or if conditions or unknown sizes decide.
    """
    # A condition may exclude one of the two iterations.
    if not is_unconditional(loop.body):
        return None
    seen: dict[object, tuple[str, int, bool]] = {}
    for access in accesses:
        for point in _constant_points(access, {loop.var} | varying, loops=loops):
            element = _element_at(access, point)
            current = (_point_text(point), point.get(loop.var, 0), access.is_store)
            earlier = seen.setdefault(element, current)
            # Two reads of one element are not a race.
            if earlier[1] != current[1] and (earlier[2] or current[2]):
                return f"as {earlier[0]} and {current[0]} do"
    return None


def is_unconditional(body: tuple[Stmt, ...]) -> bool:
    """Return whether nothing in a body is conditional, apart from the trip counts of its loops."""
    return not any(
        part.conditions for stmt in addressable_stmts(body) for part in effects_of(stmt).bodies
    )


def _constant_points(
    access: AccessForm, varying: Set[str], *, loops: Mapping[str, For]
) -> Iterator[Mapping[str, int]]:
    """Yield the values of the varying loops, if these and the accessed element are constants."""
    forms = [form for form in access.indices if form is not None]
    if len(forms) < len(access.indices) or any(form.opaque & varying for form in forms):
        return
    names = sorted(varying)
    # An unknown range has no points to try.
    ranges = [constants_of(loops[name]) or range(0) for name in names]
    count = 1
    for loop_range in ranges:
        count *= len(loop_range)
    if count <= _MAX_POINTS and not any(
        not by.is_constant for form in forms for name, by in form.terms.items() if name in varying
    ):
        for values in product(*ranges):
            yield dict(zip(names, values, strict=True))


def _element_at(access: AccessForm, point: Mapping[str, int]) -> object:
    """Return the element accessed at a point, as constants and terms that do not vary."""
    return tuple(
        (
            frozenset((name, by) for name, by in form.terms.items() if name not in point),
            frozenset(form.base.terms.items()),
            form.base.constant
            + sum(by.constant * point[name] for name, by in form.terms.items() if name in point),
        )
        for form in access.indices
        if form is not None
    )


def _point_text(point: Mapping[str, int]) -> str:
    return "(" + ", ".join(f"{name} = {value}" for name, value in point.items()) + ")"
