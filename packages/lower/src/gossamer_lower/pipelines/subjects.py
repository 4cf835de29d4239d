"""The constructs that passes act on.

A pipeline neither imports nor runs a pass for a module without its subject. Most programs have few of them,
and to find that out takes less time than to import a pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from gossamer_ir.core.annotations import ATOMIC, CHECK_INDEX_ARRAYS, EQUAL_INDICES, PEEL, WINDOW
from gossamer_ir.core.build import integer_value
from gossamer_ir.core.dtypes import DType
from gossamer_ir.nodes import (
    Allocate,
    Call,
    For,
    Function,
    Guard,
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


def _has(kind: type[Node]) -> _Finder:
    return lambda function: kind in types_in(function)


def _has_annotated_loops(key: str) -> _Finder:
    return lambda function: any(
        key in dict(loop.annotations) for loop in nodes_of_type(function, For)
    )


# By statements, of which a function has an index sooner than of all nodes.
def _has_guards(function: Function) -> bool:
    return any(True for _ in nodes_of_type(function, Guard))


def _has_scalable_allocations(function: Function) -> bool:
    allocations = nodes_of_type(function, Allocate)
    return any(contains(VScale, *allocation.buffer.shape) for allocation in allocations)


def _has_bits(function: Function) -> bool:
    return any(call.function == "find_nth_bit" for call in nodes_in_body(function, Call))


def _has_bound_masks(function: Function) -> bool:
    dtypes = {let.var.dtype for let in nodes_of_type(function, Let)}
    return any(dtype.scalar == "bool" and dtype.is_vector for dtype in map(DType.parse, dtypes))


def _has_varied_allocations(function: Function) -> bool:
    shapes = (allocation.buffer.shape for allocation in nodes_of_type(function, Allocate))
    return any(integer_value(extent) is None for shape in shapes for extent in shape)


SUBJECTS: dict[str, _Finder] = {
    "declared reducers": lambda function: bool(function.reducers),
    "bounds checks": _has_guards,
    "loops to peel": _has_annotated_loops(PEEL),
    "scalable extents": _has_scalable_allocations,
    "lane reductions": _has(LaneReduce),
    "windows": _has_annotated_loops(WINDOW),
    "gathers of equal indices": _has_annotated_loops(EQUAL_INDICES),
    "masks in variables": _has_bound_masks,
    "searches": _has(Search),
    "bits of words": _has_bits,
    "allocations of varied size": _has_varied_allocations,
    "atomic loops": _has_annotated_loops(ATOMIC),
    "checked index arrays": lambda function: CHECK_INDEX_ARRAYS in dict(function.annotations),
}
"""The subjects that passes declare (`PassRecord.acts_on`), each with a test for a function that has one."""


def has_subject(module: Module, subject: str) -> bool:
    """Return whether a function of the module has one of these `SUBJECTS`.

    >>> from gossamer_testkit.examples import SCALE
    >>> has_subject(SCALE, "searches")
    False
    """
    return any(map(SUBJECTS[subject], module.functions))
