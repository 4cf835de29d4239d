"""`split`: divide a loop into a nest of loops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from msgspec.structs import replace

from gossamer_ir.analysis.bounds.overflow import overflow_of
from gossamer_ir.arith.affine import (
    ONE_FORM,
    Affine,
    affine_of,
    expr_of,
    factor_affine,
    product_of,
    quotient,
    times,
    vscale_coefficient,
)
from gossamer_ir.arith.floor_multiples import dividend_of_floor
from gossamer_ir.core.build import ZERO, add, index_var, integer_value
from gossamer_ir.core.limits import MAX_SIZE
from gossamer_ir.dependence.mixed_radix import ceildiv_by, ceildiv_in_range, digits_from_counts
from gossamer_ir.errors import ScheduleError
from gossamer_ir.nodes import Block, Compare, Expr, For, Function, If, Stmt
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_loop
from gossamer_schedule.cursor.requirements import LOOP_STAGES, require_serial, require_zero_start
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.counts import is_count
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import schedule_error, text_of
from gossamer_schedule.legality.loop_invariance import require_unchanged, require_unchanged_bounds
from gossamer_schedule.made_names import split_loop_names
from gossamer_schedule.nests.init_checks import require_inits_with_added_factors
from gossamer_schedule.nests.split_variable import split_variable
from gossamer_schedule.safe_accesses.expression_arguments import expr_of_text


@primitive(stages=LOOP_STAGES)
def split(
    root: Cursor[Function],
    loop: str,
    *,
    factors: tuple[int | str | None, ...],
    function: str | None = None,
) -> Change:
    """Split a serial loop into a nest of loops `<loop>_0`, `<loop>_1`, ..., outermost first.

    The loop starts at 0. `factors` are the extents of the new loops: positive integers, or texts such as
    "4 * T.vscale()", for which Python code may write `T.vscale() * 4`. One factor may be None; it stands for
    the extent divided by the product of the others, rounded up. If the factors are not known to divide the
    extent, the blocks inside get a predicate that skips iterations past the end of the old loop. The result's
    names are those of the loops.

    Raises `ScheduleError` with a code `schedule.split.*`:

    * `.factors`: none, not positive, more than one None, or too few iterations
    * `.text`: a factor is not an expression
    * `.start`: the loop does not start at 0
    * `.not_proved`: the factors may not cover the extent, the extent may change while the loop runs, or an
      init may not run outside of the loops that a factor depends on

    >>> from gossamer_testkit.examples import SCALE
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(SCALE))
    for i in T.serial(n):
        with T.block("scale"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[vi] * 2.0
    >>> print(body_text(split(SCALE, "i", factors=(None, 8)).module))
    for i_0 in T.serial((n + 7) // 8):
        for i_1 in T.serial(8):
            with T.block("scale"):
                vi = T.axis.spatial(n, i_0 * 8 + i_1)
                T.where(vi < n)
                Y[vi] = X[vi] * 2.0
    """
    cursor = find_loop(root, loop=loop)

    require_serial(cursor)
    # The mixed-radix sum that replaces the variable starts at 0.
    require_zero_start(cursor)
    return split_by(cursor, _required_factors(factors, cursor))


def split_by(
    cursor: Cursor[For], counts: tuple[Affine | None, ...], *, names: tuple[str, ...] = ()
) -> Change:
    """Split a serial loop that starts at 0 by factors that are known to be positive, and to cover its extent
    if none of them is None. `names` are those of the new loops, by default new ones."""
    loop = cursor.node.var
    namer = namer_of(cursor.function)
    names = names or tuple(map(namer.fresh, split_loop_names(loop, len(counts))))
    extents = _loop_extents(cursor, counts)
    # The new extents become coefficients of iterators, so an init that runs outside must be able to
    # evaluate them.
    _require_inits(cursor, extents)
    # The old variable is the mixed-radix number of the new ones.
    digits = dict(zip(names, digits_from_counts(extents), strict=True))
    # Without a remainder no iteration is added, so no predicate is needed.
    if _is_exact(cursor, counts):
        body = split_variable(cursor.node.body, loop, digits)
    else:
        # Imported late: rules split most loops without a remainder.
        from gossamer_schedule.predicates.bounded_body import (
            with_bounded_digits,
            with_bounded_iterations,
        )

        _require_unchanged_extent(cursor)
        body = with_bounded_iterations(cursor.node.body, loop, extent=cursor.node.extent)
        if _may_wrap(cursor, _product_of_known(counts)):
            # Past the largest int64 the old variable wraps around to a negative number, below the extent.
            body = (If(Compare("ge", index_var(loop), ZERO), body),)
        body = with_bounded_digits(split_variable(body, loop, digits), set(names))
    nest = _nest_of(cursor.node, names, extents, body=body)

    return Change(cursor.replace_with((nest,)), names, {loop: names})


def _require_inits(cursor: Cursor[For], extents: Sequence[Expr]) -> None:
    """Refuse factors that depend on loops outside of which an init runs.

    All extents but the first become coefficients in the values of iterators.
    """
    feeding = {cursor.node.var}
    require_inits_with_added_factors(cursor, feeding, extents[1:])


def _require_unchanged_extent(cursor: Cursor[For]) -> None:
    """Refuse an extent or domain that the loop may change: each iteration is checked against it."""
    require_unchanged_bounds((cursor.node,), cursor=cursor)
    iters = (iterator for block in collect(Block, cursor.node) for iterator in block.iters)
    domains = (
        iterator.domain for iterator in iters if cursor.node.var in free_vars(iterator.value)
    )
    require_unchanged(cursor.node, domains, cursor=cursor, what="an iterator's domain")


def _required_factors(
    factors: Sequence[int | str | None], cursor: Cursor[For]
) -> tuple[Affine | None, ...]:
    """Return the factors; refuse them if they do not determine all extents, or if the loop may be cut short.

    Only the product of two unknown factors is determined. Products above the limit may overflow in index
    arithmetic.
    """
    if not factors or list(factors).count(None) > 1:
        raise _factors_error(
            f"the factors {tuple(factors)} are none, or more than one is None", cursor
        )
    counts = tuple(_required_factor(factor, cursor) for factor in factors)
    total = _product_of_known(counts)
    number, _ = factor_affine(total)
    if not is_count(number):
        raise _factors_error(f"the product of the factors is {number}", cursor)
    # The quotient covers symbolic extents; other extents are compared as numbers.
    if None not in counts and quotient(total, affine_of(cursor.node.extent)) is None:
        _require_cover(total, cursor)
    return counts


def _required_factor(factor: int | str | None, cursor: Cursor[For]) -> Affine | None:
    """Return a factor, or None if it is to be inferred; refuse one that may not be positive.

    With a factor of 0 or less, no iteration would run. The only symbol known to be positive is T.vscale().
    """
    if factor is None:
        return None
    count = Affine({}, factor) if isinstance(factor, int) else _parsed_factor(factor, cursor)
    number = vscale_coefficient(count)
    # A size such as n may be 0, and then no iteration would run.
    if number is None or not is_count(number):
        raise _factors_error(f"factor {factor!r} is not positive, or too large", cursor)
    return count


def _parsed_factor(factor: str, cursor: Cursor[object]) -> Affine:
    return affine_of(expr_of_text(factor, cursor, argument="factors"))


def _factors_error(reason: str, cursor: Cursor[For]) -> ScheduleError:
    return schedule_error(
        "split.factors",
        f"Loop '{cursor.node.var}' cannot be split: {reason}.",
        hint="Expected positive integers or multiples of T.vscale(), at most one None, and a product of at "
        f"most {MAX_SIZE}.",
    )


def _require_cover(total: Affine, cursor: Cursor[For]) -> None:
    """Refuse factors whose product may be less than the extent: the last iterations would never run."""
    extent = integer_value(cursor.node.extent)
    if extent is None:
        raise schedule_error(
            "split.not_proved",
            f"Cannot prove that the factors cover the extent of loop '{cursor.node.var}'.",
            needs=f"{text_of(product_of(total))} >= {text_of(cursor.node.extent)}",
            hint="Use None as one of the factors.",
            place=cursor.place,
        )
    number, _ = factor_affine(total)
    if number < extent:
        reason = f"the product of the factors is {number}, and its extent is {extent}"
        raise _factors_error(reason, cursor)


def _product_of_known(counts: Iterable[Affine | None]) -> Affine:
    return reduce(times, (count for count in counts if count is not None), ONE_FORM)


def _is_exact(cursor: Cursor[For], counts: tuple[Affine | None, ...]) -> bool:
    """Return whether the new loops have exactly as many iterations as the old one."""
    known_product = _product_of_known(counts)
    return (
        _divides(known_product, cursor)
        if None in counts
        else known_product == affine_of(cursor.node.extent)
    )


def _divides(divisor: Affine, cursor: Cursor[For]) -> bool:
    """Return whether a divisor divides the extent, even if computing the extent wraps around."""
    extent: Expr = cursor.node.extent
    if quotient(affine_of(extent), divisor) is None:
        return False
    return _is_power_of_two(divisor) or overflow_of(cursor.function).is_exact(extent)


def _is_power_of_two(divisor: Affine) -> bool:
    """Return whether a divisor is a power of two, as vscale is: these divide 2**64, so wrapping keeps their
    multiples."""
    number = vscale_coefficient(divisor)
    return number is not None and number.bit_count() == 1


def _loop_extents(cursor: Cursor[For], counts: tuple[Affine | None, ...]) -> tuple[Expr, ...]:
    inferred = _inferred_extent(cursor, _product_of_known(counts))
    extents = tuple(inferred if count is None else product_of(count) for count in counts)
    iterations = integer_value(cursor.node.extent)
    if iterations is None or iterations > 0 or None in counts:
        return extents
    return (ZERO, *extents[1:])  # an empty loop stays empty, and so reads nothing


def _inferred_extent(cursor: Cursor[For], divisor: Affine) -> Expr:
    """Return the extent divided by a divisor, rounded up.

    The usual sum, extent + divisor - 1, is avoided where it may wrap around.
    """
    extent: Expr = cursor.node.extent
    whole = quotient(affine_of(extent), divisor)
    # Without the sum, a condition on the loop is about its extent, as is that on `n // 8 * 8` iterations.
    if whole is not None and _is_exact_extent(extent, cursor):
        return expr_of(whole)
    count = ceildiv_by(extent, divisor)
    if _divides(divisor, cursor) or overflow_of(cursor.function).is_exact(count):
        return count
    return ceildiv_in_range(extent, divisor)


def _is_exact_extent(extent: Expr, cursor: Cursor[object]) -> bool:
    """Return whether computing an extent does not wrap around."""
    return dividend_of_floor(extent) is not None or overflow_of(cursor.function).is_exact(extent)


def _may_wrap(cursor: Cursor[For], divisor: Affine) -> bool:
    """Return whether the loops may run past the largest int64, where the old variable becomes negative."""
    # Less than one divisor past the extent is ever reached.
    end = add(cursor.node.extent, product_of(divisor))
    return not _is_power_of_two(divisor) and not overflow_of(cursor.function).is_exact(end)


def _nest_of(
    loop: For, names: tuple[str, ...], extents: tuple[Expr, ...], *, body: tuple[Stmt, ...]
) -> For:
    for name, extent in zip(reversed(names[1:]), reversed(extents[1:]), strict=True):
        body = (For(name, ZERO, extent, body),)
    return replace(loop, var=names[0], extent=extents[0], body=body)
