"""Names of a program that a schedule would make.

A rule addresses loops, blocks and buffers before they exist, by the names that lowering and primitives give
them. If the program uses such a name, they would get another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gossamer_ir.core.lowered_names import data_name
from gossamer_ir.nodes import Function, Iteration
from gossamer_schedule.definition.made_names import (
    cache_name,
    copy_block_name,
    is_made_from,
    partial_name,
)


def has_taken(
    function: Function, iteration: Iteration, *, names: Iterable[str], copied: Sequence[str] = ()
) -> bool:
    """Return whether a program uses one of these names, or one that primitives would make for its loops, or
    for the loops that copy some of its buffers."""
    taken = names_used(function, iteration)
    return not taken.isdisjoint(names) or is_clashing(taken, (*iteration.vars, *copied))


def names_used(function: Function, *iterations: Iteration) -> set[str]:
    """Return the names that a function of these iterations uses."""
    declared = (*function.params, *function.axes, *function.buffers)
    names = {found.name for found in declared}
    return names.union(*((iteration.name, *iteration.vars) for iteration in iterations))


def is_clashing(taken: Iterable[str], loops: Sequence[str]) -> bool:
    """Return whether primitives would make one of the names when they transform these loops."""
    return any(is_made_from(name, loop) for name in taken for loop in loops)


def accumulator_names(block: str, output: str) -> set[str]:
    """Return the names that a local buffer for the results of a block makes: the output's at the loop stage,
    that of the buffer, and that of the block that copies it."""
    data = data_name(output)
    return {data, *copy_names(block, data, scope="local")}


def partial_names(block: str, output: str) -> set[str]:
    """Return the names of the block and the buffer that partial results of a block make."""
    return {partial_name(block), partial_name(output)}


def copy_names(block: str, buffer: str, *, scope: str) -> set[str]:
    """Return the names of the copy of a buffer that a block accesses, and of the block that copies it."""
    copy = cache_name(buffer, scope)
    return {copy, copy_block_name(block, copy)}
