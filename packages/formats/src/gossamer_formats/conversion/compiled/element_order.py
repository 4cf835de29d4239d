"""The order of a format's elements, and whether they are distinct."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gossamer_formats.conversion.compiled.element_loop import ElementLoop
from gossamer_formats.conversion.compiled.program import Compile, run_program
from gossamer_formats.conversion.inverse_map import with_sizes
from gossamer_formats.storage import axes_by_name, evaluate
from gossamer_ir.analysis.logical_elements import map_results, map_variables
from gossamer_ir.arith.affine import affine_of
from gossamer_ir.core.axis_kinds import indices_of
from gossamer_ir.nodes import FormatDescription, Var


def digit_order(description: FormatDescription, sizes: Mapping[str, int]) -> tuple[int, ...] | None:
    """Return the logical dimension of each axis that varies: its coordinate is the next digit of the logical
    coordinate.

    So elements that differ in one logical coordinate are stored in the order of this coordinate; if no
    dimension is repeated, all are sorted lexicographically. None if logical coordinates are not composed of
    digits. It is not considered whether the indices are sorted.

    >>> from gossamer_formats.descriptions.csc import csc
    >>> from gossamer_formats.descriptions.bsr import bsr
    >>> digit_order(csc(), {"m": 4, "n": 4, "nnz": 2})
    (1, 0)
    >>> digit_order(bsr(), {"m": 4, "n": 4, "blocks": 1, "block_rows": 2, "block_columns": 2})
    (0, 1, 0, 1)
    """
    axes = axes_by_name(description)
    names = description.buffer.axes
    lengths = {
        variable: evaluate(axes[name].length, sizes)
        for variable, name in zip(map_variables(description), names, strict=True)
    }
    variables = list(lengths)
    dimensions: dict[str, int] = {}
    for number, result in enumerate(map_results(description)):
        base, before = 1, len(names)
        for atom, coefficient in sorted(
            affine_of(with_sizes(result, sizes)).terms.items(), key=lambda term: term[1]
        ):
            if not isinstance(atom, Var) or atom.name in dimensions or coefficient < base:
                return None
            if variables.index(atom.name) > before:
                return None
            before = variables.index(atom.name)
            dimensions[atom.name] = number
            base = coefficient * lengths[atom.name]
    if any(variable not in dimensions and lengths[variable] > 1 for variable in variables):
        return None
    return tuple(dimensions[variable] for variable in variables if variable in dimensions)


def declares_order(description: FormatDescription) -> bool:
    """Return whether the format says that all indices are sorted, and that none is repeated.

    >>> from gossamer_formats.descriptions.coo import coo
    >>> from gossamer_formats.descriptions.csr import csr
    >>> declares_order(csr()), declares_order(coo())
    (True, False)
    """
    stored = [indices_of(axis) for axis in description.axes]
    return all(indices is None or (indices.sorted and indices.unique) for indices in stored)


def is_ascending(loop: ElementLoop, order: tuple[int, ...], compile: Compile) -> bool:
    """Return whether elements are distinct and sorted by logical coordinates in an order."""
    flags = np.zeros(1, np.uint8)
    starts, ends = [], []
    for number in order:
        starts += [
            f'LAST{number} = T.alloc_buffer((1,), "int64", scope="local")',
            f"LAST{number}[0] = -1",
        ]
        ends.append(f"LAST{number}[0] = l{number}")
    statements = [f"if not ({_is_after(order)}):", "    FLAGS[0] = T.uint8(1)", *ends]
    run_program(compile, [*starts, *loop.around(statements)], {**loop.arguments, "FLAGS": flags})
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
