"""Whether elements are sorted and distinct."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from gossamer_formats.conversion.compiled.element_loop import ElementLoop
from gossamer_formats.conversion.compiled.program import Compile, run_program
from gossamer_ir.core.axis_kinds import indices_of
from gossamer_ir.nodes import FormatDescription


@lru_cache(maxsize=256)
def declares_order(description: FormatDescription) -> bool:
    """Return whether the format says that all indices are sorted, and that none is repeated.

    >>> from gossamer_formats.descriptions.coo import coo
    >>> from gossamer_formats.descriptions.csr import csr
    >>> declares_order(csr()), declares_order(coo())
    (True, False)
    """
    stored = [indices_of(axis) for axis in description.axes]
    return all(indices is None or (indices.sorted and indices.unique) for indices in stored)


@lru_cache(maxsize=256)
def needs_order(description: FormatDescription) -> bool:
    """Return whether a format says that some of its indices are sorted.

    >>> from gossamer_formats.descriptions.csr import csr
    >>> needs_order(csr()), needs_order(csr(sorted=False))
    (True, False)
    """
    stored = [indices_of(axis) for axis in description.axes]
    return any(indices is not None and indices.sorted for indices in stored)


def is_lexicographic(order: tuple[int, ...]) -> bool:
    """Return whether elements in an order are sorted lexicographically: no dimension is repeated."""
    return len(set(order)) == len(order)


def is_ascending(loop: ElementLoop, order: tuple[int, ...], compile: Compile) -> bool:
    """Return whether elements are distinct and sorted by logical coordinates in an order."""
    flags = np.zeros(1, np.uint8)
    starts = ['UNSORTED = T.alloc_buffer((1,), "int64", scope="local")', "UNSORTED[0] = 0"]
    updates = []
    for number in order:
        starts += [
            f'LAST{number} = T.alloc_buffer((1,), "int64", scope="local")',
            f"LAST{number}[0] = -1",
        ]
        updates.append(f"LAST{number}[0] = l{number}")
    # No branch: what is stored depends on all elements.
    statements = [f"UNSORTED[0] = T.select({_is_after(order)}, UNSORTED[0], 1)", *updates]
    lines = [*starts, *loop.around(statements), "FLAGS[0] = T.uint8(UNSORTED[0])"]
    run_program(compile, lines, {**loop.arguments, "FLAGS": flags})
    return not flags[0]


def _is_after(order: tuple[int, ...]) -> str:
    """Return the condition that the coordinates follow those of the element before.

    >>> _is_after((1, 0))
    'l1 > LAST1[0] or (l1 == LAST1[0] and (l0 > LAST0[0]))'
    """
    first, *others = order
    after = f"l{first} > LAST{first}[0]"
    if not others:
        return after
    return f"{after} or (l{first} == LAST{first}[0] and ({_is_after(tuple(others))}))"
