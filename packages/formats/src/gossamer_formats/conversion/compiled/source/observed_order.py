"""The order of elements that declarations do not tell: a program compares each with the one before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gossamer_formats.conversion.compiled.plans.array_numbers import first_flag
from gossamer_formats.conversion.compiled.programs.program import ArrayArgument
from gossamer_formats.conversion.compiled.programs.run_program import run_conversion_program
from gossamer_formats.conversion.compiled.programs.statements import (
    both,
    cell,
    compare,
    either,
    get_cell,
    select,
    set_cell,
    store,
)
from gossamer_formats.conversion.compiled.source.element_loop import ElementLoop
from gossamer_formats.conversion.compiled.source.element_order import (
    UNKNOWN,
    ElementOrder,
    NextDigit,
    without_repetitions,
)
from gossamer_formats.conversion.maps.inverse_map import logical_variable
from gossamer_ir.core.build import ONE, ZERO, index
from gossamer_ir.nodes import Expr


def observed_order(order: ElementOrder, loop: ElementLoop) -> ElementOrder:
    """Return the order of elements that may be repeated, or in another order than that of the loops: all that
    is known is found by comparing them.

    Only lexicographic orders are recognized.
    """
    dimensions = without_repetitions([digit.dimension for digit in order.digits])
    if not dimensions or len(set(dimensions)) < len(dimensions):
        return UNKNOWN
    if not _is_ascending(loop, dimensions):
        return UNKNOWN
    return ElementOrder(
        tuple(NextDigit(number, ascends=True) for number in dimensions), are_distinct=True
    )


def _is_ascending(loop: ElementLoop, dimensions: Sequence[int]) -> bool:
    """Return whether elements are distinct and sorted by logical coordinates in an order."""
    recorder = loop.arguments.recorder
    starts = [*cell("UNSORTED", ZERO)]
    for number in dimensions:
        starts += cell(_last_name(number), index(-1))
    # No branch: what is stored depends on all elements.
    unsorted = select(_is_after(dimensions), get_cell("UNSORTED"), ONE)
    updates = [set_cell(_last_name(number), logical_variable(number)) for number in dimensions]
    loops = loop.around([set_cell("UNSORTED", unsorted), *updates])
    flag = recorder.compute(np.zeros, 1, np.uint8)
    run_conversion_program(
        recorder,
        [*starts, *loops, store("FLAG", ZERO, get_cell("UNSORTED"), "uint8")],
        {**loop.arguments.by_name, "FLAG": ArrayArgument(flag, "uint8", (ONE,))},
    )
    return not recorder.decide(first_flag, flag)


def _last_name(dimension: int) -> str:
    return f"LAST{dimension}"


def _is_after(dimensions: Sequence[int]) -> Expr:
    """Return the condition that the coordinates follow those of the element before.

    >>> from gossamer_ir.script import print_expr
    >>> print_expr(_is_after((1, 0)))
    'l1 > LAST1[0] or l1 == LAST1[0] and l0 > LAST0[0]'
    """
    first, *others = dimensions
    coordinate, last = logical_variable(first), get_cell(_last_name(first))
    after = compare("gt", coordinate, last)
    if not others:
        return after
    return either(after, both(compare("eq", coordinate, last), _is_after(others)))
