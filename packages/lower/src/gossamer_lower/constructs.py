"""The constructs of modules that passes act on, and that they remove.

A pipeline neither imports nor runs a pass for a module without the construct that it acts on. Most programs
have few of them, and to find that out takes less time than to import a pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from gossamer_ir.core.annotations import ATOMIC, CHECK_INDEX_ARRAYS, EQUAL_INDICES, PEEL, WINDOW
from gossamer_ir.core.build import integer_value
from gossamer_ir.core.dtypes import DType
from gossamer_ir.nodes import (
    Allocate,
    Block,
    Call,
    Combine,
    For,
    Function,
    Guard,
    Iteration,
    LaneReduce,
    Let,
    Module,
    Node,
    Search,
    VScale,
)
from gossamer_ir.traversal.node_index import nodes_in_body, nodes_of_type, types_in
from gossamer_ir.traversal.walk import contains

_Finder: TypeAlias = Callable[[Function], bool]


class Construct(msgspec.Struct, frozen=True):
    """A construct of modules: whether a function has it, and whether a pass removes it, so that modules of
    the flat stage have none."""

    is_in: _Finder
    is_removed: bool = False


def _has(kind: type[Node]) -> _Finder:
    return lambda function: kind in types_in(function)


# By statements, of which a function has an index sooner than of all nodes.
def _has_stmts(kind: type[Node]) -> _Finder:
    return lambda function: any(True for _ in nodes_of_type(function, kind))


def _has_loops(kind: str) -> _Finder:
    return lambda function: any(loop.kind == kind for loop in nodes_of_type(function, For))


def _has_annotated_loops(key: str) -> _Finder:
    return lambda function: any(
        key in dict(loop.annotations) for loop in nodes_of_type(function, For)
    )


# Other statements: nothing is concluded from them.
def _has_scalable_allocations(function: Function) -> bool:
    allocations = nodes_of_type(function, Allocate)
    return any(contains(VScale, *allocation.buffer.shape) for allocation in allocations)


def _has_bits(function: Function) -> bool:
    return any(call.function == "find_nth_bit" for call in nodes_in_body(function, Call))


# Other statements: nothing is concluded from them.
def _has_bound_masks(function: Function) -> bool:
    dtypes = {let.var.dtype for let in nodes_of_type(function, Let)}
    return any(dtype.scalar == "bool" and dtype.is_vector for dtype in map(DType.parse, dtypes))


# Other statements: nothing is concluded from them.
def _has_varied_allocations(function: Function) -> bool:
    shapes = (allocation.buffer.shape for allocation in nodes_of_type(function, Allocate))
    return any(integer_value(extent) is None for shape in shapes for extent in shape)


def _has_declared_scratch(function: Function) -> bool:
    return any(buffer.handle is None for buffer in function.buffers)


CONSTRUCTS: dict[str, Construct] = {
    "iterations": Construct(_has_stmts(Iteration), is_removed=True),
    "axes": Construct(lambda function: bool(function.axes), is_removed=True),
    "declared reducers": Construct(lambda function: bool(function.reducers)),
    "reducers": Construct(_has_stmts(Combine), is_removed=True),
    "blocks": Construct(_has_stmts(Block), is_removed=True),
    "declared scratch": Construct(_has_declared_scratch, is_removed=True),
    "bounds checks": Construct(_has_stmts(Guard)),
    "loops to peel": Construct(_has_annotated_loops(PEEL)),
    "vectorized loops": Construct(_has_loops("vectorized"), is_removed=True),
    "unrolled loops": Construct(_has_loops("unrolled"), is_removed=True),
    "scalable extents": Construct(_has_scalable_allocations),
    "lane reductions": Construct(_has(LaneReduce)),
    "windows": Construct(_has_annotated_loops(WINDOW)),
    "gathers of equal indices": Construct(_has_annotated_loops(EQUAL_INDICES)),
    "masks in variables": Construct(_has_bound_masks),
    "searches": Construct(_has(Search), is_removed=True),
    "bits of words": Construct(_has_bits),
    "allocations of varied size": Construct(_has_varied_allocations),
    "atomic loops": Construct(_has_annotated_loops(ATOMIC)),
    "checked index arrays": Construct(
        lambda function: CHECK_INDEX_ARRAYS in dict(function.annotations)
    ),
    "parallel loops": Construct(_has_loops("parallel"), is_removed=True),
}
"""The constructs that passes declare (`acts_on`, `without` and `removes` of a `PassRecord`)."""

REMOVED_CONSTRUCTS = tuple(name for name, construct in CONSTRUCTS.items() if construct.is_removed)
"""The constructs that modules of the flat stage do not have."""


def has_construct(module: Module, name: str) -> bool:
    """Return whether a function of the module has one of these `CONSTRUCTS`.

    >>> from gossamer_testkit.examples import SCALE
    >>> has_construct(SCALE, "searches")
    False
    """
    return any(map(CONSTRUCTS[name].is_in, module.functions))
