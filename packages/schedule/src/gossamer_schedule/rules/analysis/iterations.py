"""The iterations of a coordinate module, and their axes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from msgspec.structs import replace

from gossamer_ir.arith.prover import Prover
from gossamer_ir.core.annotations import is_composable
from gossamer_ir.core.build import ZERO, index_var
from gossamer_ir.dependence.access_forms import has_aliasing_indices
from gossamer_ir.nodes import Axis, Function, Iteration, Module, OverAxis, SparseBuffer
from gossamer_ir.traversal.buffer_definitions import sparse_buffers
from gossamer_ir.traversal.buffer_uses import buffers_written
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_support.items_by_name import items_by_name

Pattern = TypeVar("Pattern")


def single_iteration(module: Module) -> tuple[Function, Iteration] | None:
    """Return the function and the iteration of a coordinate module that contains nothing else; None for
    others.

    Outputs with elements after the last row are excluded. There, an index beyond a row is an element of the
    next row, so that rows may not be independent.
    """
    if module.stage != "coordinate" or len(module.functions) != 1:
        return None
    function = module.functions[0]
    if len(function.body) != 1 or not isinstance(function.body[0], Iteration):
        return None
    iteration = _without_moved_init(function, function.body[0])
    stored = buffers_written((iteration,))
    if any(has_aliasing_indices(buffer) for buffer in function.buffers if buffer.name in stored):
        return None
    return function, iteration


def single_iteration_pattern(
    find: Callable[[Function, Iteration], Pattern | None],
) -> Callable[[Module], Pattern | None]:
    """Return the decorator of a pattern that finds it in a `single_iteration`: the decorated function takes a
    module, and returns None for any other program, too."""

    @wraps(find)
    def find_in(module: Module) -> Pattern | None:
        single = single_iteration(module)
        return None if single is None else find(*single)

    return find_in


def several_iterations(module: Module) -> tuple[Function, tuple[Iteration, ...]] | None:
    """Return the function and the iterations of a coordinate module that contains two or more iterations and
    nothing else; None for others.

    Composable functions are excluded. Lowering lets their inits run before all iterations, so that what an
    iteration adds to is not proved to exist, and vectors would have bounds checks.
    """
    if module.stage != "coordinate" or len(module.functions) != 1:
        return None
    function = module.functions[0]
    if is_composable(function):
        return None
    iterations = tuple(stmt for stmt in function.body if isinstance(stmt, Iteration))
    return (
        None
        if len(iterations) < 2 or len(iterations) < len(function.body)
        else (function, iterations)
    )


def _without_moved_init(function: Function, iteration: Iteration) -> Iteration:
    """Return an iteration without its init if lowering lets that run before all iterations."""
    return replace(iteration, init=()) if is_composable(function) else iteration


def only(iteration: Iteration, *, module: Module) -> Module:
    """Return a module of one function with this iteration as the whole body."""
    return replace(module, functions=(replace(module.functions[0], body=(iteration,)),))


def axes_of(function: Function, iteration: Iteration) -> tuple[Axis, ...]:
    """Return the axes of an iteration; none if some are fused or attached."""
    by_name = items_by_name(function.axes)
    # None rather than some of them, so that no pattern matches what it does not see.
    over = [by_name[item.axis] for item in iteration.axes if isinstance(item, OverAxis)]
    return tuple(over) if len(over) == len(iteration.axes) else ()


def prover_in(function: Function, iteration: Iteration) -> Prover:
    """Return a prover for the points of an iteration: its variables are in the ranges of their axes, and no
    size is negative."""
    prover, axes = Prover(), axes_of(function, iteration)
    # Sorted, so that proofs do not depend on the order of a set.
    for size in sorted(free_vars(*(axis.length for axis in function.axes))):
        prover.assume_nonnegative(index_var(size))
    for var, axis in zip(iteration.vars, axes, strict=False):
        prover.assume_range(var, ZERO, axis.length)
    return prover


def buffers_by_name(function: Function) -> dict[str, SparseBuffer]:
    """Return the buffers of a function that have axes."""
    return items_by_name(sparse_buffers(function.buffers))
