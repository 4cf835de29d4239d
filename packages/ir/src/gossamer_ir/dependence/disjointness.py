"""Decides if different iterations of a loop access different elements: proved, disproved, or unknown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.accesses.init_nests import ValuesOfVars
from gossamer_ir.analysis.accesses.linear_form import LinearForm, form_of
from gossamer_ir.analysis.axes.axis_facts import known_facts
from gossamer_ir.analysis.bounds.loops_by_name import LoopsByName, loops_of
from gossamer_ir.arith.affine import Affine
from gossamer_ir.arith.offsets import load_of_index
from gossamer_ir.core.build import ZERO, integer_value
from gossamer_ir.dependence.access_forms import AccessForm, access_forms
from gossamer_ir.dependence.injectivity import is_injective
from gossamer_ir.dependence.mixed_radix import digits_fit, digits_of, injectivity_key, value_span
from gossamer_ir.facts.fact_index import fact_index
from gossamer_ir.nodes import (
    Binary,
    Const,
    Distinct,
    Expr,
    Fact,
    For,
    Function,
    Load,
    SortedSegments,
    Stmt,
    Var,
)
from gossamer_ir.traversal.buffer_uses import buffers_read, buffers_written, outer_writes
from gossamer_ir.traversal.free_vars import free_vars

Disjointness: TypeAlias = Literal["disjoint", "race", "unknown"]


def written_accesses(
    body: tuple[Stmt, ...], *, values: ValuesOfVars, function: Function
) -> dict[str, list[AccessForm]]:
    """Return the accesses to each buffer that a body stores to."""
    buffers, changing = outer_writes(body), buffers_written(body)
    forms: dict[str, list[AccessForm]] = {name: [] for name in sorted(buffers)}
    for access in access_forms(body, buffers, values=values, function=function):
        forms[access.buffer].append(without_changing(access, changing))
    return forms


def without_changing(access: AccessForm, buffers: Set[str]) -> AccessForm:
    """Return the access without the indices that load from buffers that a body writes (including those that
    it allocates): such an index may differ each time it is evaluated, so it is unknown."""
    if not any(_reads_any(form, buffers) for form in access.selectors):
        return access
    indices, numbers = (
        tuple(None if _reads_any(form, buffers) else form for form in forms)
        for forms in (access.indices, access.numbers)
    )
    return replace(access, indices=indices, numbers=numbers)


def _reads_any(form: LinearForm | None, buffers: Set[str]) -> bool:
    """Return whether a form loads from some buffers."""
    if form is None:
        return False
    parts = (form.base, *form.terms.values())
    return any(buffers_read(*part.terms) & buffers for part in parts if part.terms)


def disjointness(
    loop_name: str,
    accesses: Iterable[AccessForm],
    *,
    varying: Set[str],
    function: Function,
) -> Disjointness:
    """Return the disjointness of the accesses to one buffer; `varying` are the loop and those inside it.

    The tests are tried in turn: indices that are mixed-radix numbers with the loop as a digit, quotients
    and remainders of such a number, injective index arrays, and finally a store that ignores the loop.

    >>> from gossamer_ir.core.build import ONE, ZERO, floordiv, index, index_var
    >>> from gossamer_ir.nodes import Load, Store
    >>> i = index_var("i")
    >>> for at in (i, floordiv(i, index(2)), Load("P", (i,), "int64"), ONE):
    ...     loop = For("i", ZERO, index(8), (Store("Y", (at,), ONE),))
    ...     function = Function("f", (), (loop,), facts=(Distinct("P"),))
    ...     forms = written_accesses(loop.body, values={}, function=function)["Y"]
    ...     disjointness("i", forms, varying={"i"}, function=function)
    'disjoint'
    'unknown'
    'disjoint'
    'race'
    """
    extent = integer_value(loops_of(function)[loop_name].extent)
    # A single iteration has no other one to conflict with.
    if extent is not None and extent <= 1:
        return "disjoint"
    every = list(accesses)
    if _are_disjoint(loop_name, every, varying=varying, function=function):
        return "disjoint"
    # Last: only a store to an element that ignores the loop is a proof of a race. All else is unknown.
    if any(access.is_store and _is_independent_of(access, loop_name, varying) for access in every):
        return "race"
    return "unknown"


def _are_disjoint(
    loop_name: str, accesses: Sequence[AccessForm], *, varying: Set[str], function: Function
) -> bool:
    """Return whether an index, or the number of an element, is proved to differ in different iterations."""
    loops, facts = loops_of(function), known_facts(function)
    columns = [
        *zip(*(access.indices for access in accesses), strict=False),
        *zip(*(access.numbers for access in accesses), strict=False),
    ]
    # Y[P[i]] with distinct values in P: different i give different elements.
    columns += _loaded_indices(columns, facts, loops=loops, varying=varying)
    if any(
        _determine_iteration(loop_name, forms, loops=loops, varying=varying) for forms in columns
    ):
        return True
    if _is_recovered(loop_name, columns, loops=loops, varying=varying):
        return True
    # An inner loop with one iteration does not vary.
    others = {name for name in varying - {loop_name} if integer_value(loops[name].extent) != 1}
    return any(
        _share_injective_coordinate(loops[loop_name], forms, others=others, facts=facts)
        for forms in columns
    )


def _loaded_indices(
    columns: Iterable[Sequence[LinearForm | None]],
    facts: Sequence[Fact],
    *,
    loops: LoopsByName,
    varying: Set[str],
) -> list[tuple[LinearForm | None, ...]]:
    """Return the indices of the loads that all accesses use in one dimension, recursively. Loads from an
    array without duplicates are different if their indices are; so are numbers of which they are the leading
    digit, such as rows of the blocks that an array lists. If only each row of an array is without
    duplicates, its last index counts if all loads are from one row."""
    loaded: list[tuple[LinearForm | None, ...]] = []
    for forms in columns:
        leading = [leading_coordinate(form, loops=loops, varying=varying) for form in forms]
        loads = [None if digit is None else load_of_index(digit.atom) for digit in leading]
        places = {replace(digit, atom=ZERO) for digit in leading if digit is not None}
        # Equal values in two different arrays, or of different digits, say nothing about their indices.
        if None in loads or len(places) != 1:
            continue
        selectors = _selectors([load for load in loads if load is not None], facts, varying)
        columns_of_it = [
            tuple(form_of(at, {}, loops=loops) for at in column) for column in selectors
        ]
        loaded += columns_of_it
        loaded += _loaded_indices(columns_of_it, facts, loops=loops, varying=varying)
    return loaded


def _selectors(
    loads: Sequence[Load], facts: Sequence[Fact], varying: Set[str]
) -> list[tuple[Expr, ...]]:
    """Return the indices, dimension by dimension, that are different only if loads from one array have
    different values."""
    if len({load.buffer for load in loads}) != 1:
        return []
    columns = [*zip(*(load.indices for load in loads), strict=True)]
    about, buffer = fact_index(facts), loads[0].buffer
    if any(fact.buffer == buffer for fact in about.facts_of_type(Distinct)):
        return columns
    has_distinct_rows = any(
        fact.unique and fact.indptr is None for fact in about.about(buffer, SortedSegments)
    )
    is_one_row = all(
        len({*column}) == 1 and free_vars(column[0]).isdisjoint(varying) for column in columns[:-1]
    )
    return columns[-1:] if has_distinct_rows and is_one_row else []


def _determine_iteration(
    loop_name: str, forms: Iterable[LinearForm | None], *, loops: LoopsByName, varying: Set[str]
) -> bool:
    """Return whether all forms determine the iteration of the loop in the same way."""
    keys = set()
    for form in forms:
        key = (
            None if form is None else injectivity_key(form, loop_name, loops=loops, varying=varying)
        )
        if key is None:
            return False
        keys.add(key)
    # i for the store and i + 1 for the load each determine the iteration, but in different ways: X[i] and
    # X[i + 1] share elements.
    return len(keys) == 1


def _is_recovered(
    loop_name: str,
    columns: Iterable[Iterable[LinearForm | None]],
    *,
    loops: LoopsByName,
    varying: Set[str],
) -> bool:
    """Return whether quotients and remainders, each used by all accesses in one dimension, together determine
    a number that determines the iteration: as `f // n` and `f % n` determine the variable `f` of a fused
    loop, even if that loop was split again."""
    by_dimension = [
        {leading_coordinate(form, loops=loops, varying=varying) for form in forms}
        for forms in columns
    ]
    shared = {digit.atom for entry in by_dimension if len(entry) == 1 for digit in entry if digit}
    whole = (
        expr.lhs
        for expr in shared
        if isinstance(expr, Binary) and _is_known(expr.lhs, shared, varying)
    )
    return any(
        injectivity_key(form_of(expr, {}, loops=loops), loop_name, loops=loops, varying=varying)
        is not None
        for expr in whole
    )


def _is_known(expr: Expr, known_exprs: Set[Expr | None], varying: Set[str]) -> bool:
    """Return whether an expression is known, or `expr // n` and `expr % n` are, for an invariant n."""
    if expr in known_exprs:
        return True
    return any(
        isinstance(entry, Binary)
        and (entry.op, entry.lhs) == ("floormod", expr)
        and free_vars(entry.rhs).isdisjoint(varying)
        and _is_known(Binary("floordiv", expr, entry.rhs), known_exprs, varying)
        for entry in known_exprs
    )


def _share_injective_coordinate(
    loop: For, forms: Sequence[LinearForm | None], *, others: Set[str], facts: Sequence[Fact]
) -> bool:
    """Return whether all accesses use one coordinate that is injective in the loop and does not depend on the
    `others`, the inner loops."""
    coordinate = coordinate_of(forms[0])
    # Two different injective indices may have the same value in different iterations.
    if coordinate is None or any(form != forms[0] for form in forms):
        return False
    return free_vars(coordinate).isdisjoint(others) and is_injective(coordinate, loop, facts)


def coordinate_of(form: LinearForm | None) -> Expr | None:
    """Return the atom that a form consists of; None if it is a sum or a multiple."""
    if form is None or form.terms or form.base.constant or len(form.base.terms) != 1:
        return None
    ((atom, count),) = form.base.terms.items()
    return atom if count == 1 else None


class LeadingDigit(msgspec.Struct, frozen=True):
    """The highest digit of a number, an atom, and its place value. `fixed` are terms in loops that do not
    vary, and `constant` is a number, which are added to the number."""

    atom: Expr
    coefficient: int
    fixed: frozenset[tuple[str, Affine]]
    constant: int


def leading_coordinate(
    form: LinearForm | None, *, loops: LoopsByName, varying: Set[str]
) -> LeadingDigit | None:
    """Return the atom that a form determines as its leading digit; None if there is none.

    The form must be `coefficient * atom + rest + fixed + constant`, where `rest` is a sum of varying loops
    with 0 <= rest < coefficient.
    """
    if form is None or len(form.base.terms) != 1:
        return None
    ((atom, count),) = form.base.terms.items()
    digits = digits_of(form, varying, loops=loops)
    # A digit that starts above 0 could carry into the next one.
    is_low = all(integer_value(loops[name].start) == 0 for name in digits)
    is_determined = is_low and digits_fit(list(digits.values()), Affine({}, count))
    if not is_determined or not _is_narrow(form, atom, count, loops=loops, varying=varying):
        return None
    fixed = frozenset(item for item in form.terms.items() if item[0] not in varying)
    return LeadingDigit(atom, count, fixed, form.base.constant)


def _is_narrow(
    form: LinearForm, atom: Expr, count: int, *, loops: LoopsByName, varying: Set[str]
) -> bool:
    """Return whether different values of a form are different machine integers, too: their distance is less
    than 2**64."""
    if count == 1 and not form.terms:
        return True
    # An atom of unknown sign lies in [-bound, bound], twice as wide.
    width = loops.overflow.bound(atom) * (1 if _is_nonnegative(atom, loops) else 2)
    return abs(count) * width + value_span(form, varying, loops=loops) < 1 << 64


# Other expressions and operations: nothing is concluded from them.
def _is_nonnegative(expr: Expr, loops: LoopsByName) -> bool:
    """Return whether an expression is not negative because its operands are loops that start at 0, and
    nothing wraps."""
    match expr:
        case Var(name=name):
            return name in loops and integer_value(loops[name].start) == 0
        case Const():
            # 0 may be a divisor here, of which nothing is concluded.
            return (integer_value(expr) or 0) > 0
        case Binary(op="add" | "mul" | "floordiv" | "floormod" | "min" | "max"):
            sides = all(_is_nonnegative(side, loops) for side in (expr.lhs, expr.rhs))
            return sides and loops.overflow.is_exact(expr)
    return False


def _is_independent_of(access: AccessForm, loop_name: str, varying: Set[str]) -> bool:
    """Return whether every iteration accesses the same element."""
    return not any(
        form is None or loop_name in form.terms or form.opaque & varying for form in access.indices
    )
