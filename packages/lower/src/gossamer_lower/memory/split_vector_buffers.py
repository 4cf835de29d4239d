"""Splits local buffers of scalable vectors: one buffer for each vector (scalar replacement of aggregates).

LLVM does this for buffers of constant size, which then live in registers. It does not split memory whose
size is a multiple of vscale, so a tile of several scalable vectors would be loaded and stored for each
update.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from msgspec.structs import replace

from gossamer_ir.arith.affine import affine_of
from gossamer_ir.core.build import ONE, ZERO, index, integer_value, mul
from gossamer_ir.nodes import Allocate, Buffer, Expr, Function, Lanes, Module, Node, Ramp, VScale
from gossamer_ir.traversal.access_types import BUFFER_NODES, ELEMENT_NODES
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.node_index import nodes_in_body
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.walk import contains, every_stmt
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.statements.rebuild import with_body

_VectorIndex: TypeAlias = tuple[int, ...]
"""The index of a vector in its buffer: the outer indices, and the number of the vector along the last
dimension."""


@lowering_pass(
    takes=("loop",),
    acts_on="scalable extents",
    without=("blocks", "vectorized loops", "unrolled loops"),
    after={"unroll_loops": "the indices of the copies of a body are constant"},
    before={
        "hoist_invariant_loads": "stores to one vector do not keep loads of the others in a loop"
    },
)
def split_vector_buffers(module: Module) -> Module:
    """Allocate one buffer for each vector of a local buffer, if every access is to one whole scalable vector
    at a constant place.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> before = program('''
    ... Z = T.alloc_buffer((2, 4 * T.vscale()), "float32", scope="local")
    ... Z[0, T.ramp(0, 1, 4 * T.vscale())] = T.broadcast(1.0, 4 * T.vscale())
    ... Z[1, T.ramp(0, 1, 4 * T.vscale())] = Z[0, T.ramp(0, 1, 4 * T.vscale())]
    ... ''')
    >>> print(body_text(split_vector_buffers(before)))
    Z_0 = T.alloc_buffer((4 * T.vscale(),), "float32", scope="local")
    Z_1 = T.alloc_buffer((4 * T.vscale(),), "float32", scope="local")
    Z_0[T.ramp(0, 1, 4 * T.vscale())] = T.broadcast(1.0, 4 * T.vscale())
    Z_1[T.ramp(0, 1, 4 * T.vscale())] = Z_0[T.ramp(0, 1, 4 * T.vscale())]
    """
    return map_functions(module, _split_function)


def _split_function(function: Function) -> Function:
    buffers = {
        buffer.name: buffer
        for buffer in allocations(every_stmt(function))
        if buffer.scope == "local" and contains(VScale, *buffer.shape)
    }
    if not buffers:
        return function
    accesses: dict[str, list[Any]] = {name: [] for name in buffers}
    for node in nodes_in_body(function, *BUFFER_NODES):
        if node.buffer in accesses:
            accesses[node.buffer].append(node)
    namer = namer_of(function)
    vectors: dict[str, Mapping[_VectorIndex, Buffer]] = {}
    for name, nodes in accesses.items():
        lanes = _common_lanes(nodes)
        vector_indices = None if lanes is None else _vector_indices(nodes, lanes)
        if lanes is None or vector_indices is None or len(vector_indices) < 2:
            continue
        shape = (mul(index(lanes.count), VScale()),)
        vectors[name] = {
            vector_index: replace(buffers[name], name=namer.fresh(f"{name}_{number}"), shape=shape)
            for number, vector_index in enumerate(vector_indices)
        }
    return with_body(function, rewrite_body(function.body, _rule_for(vectors), leaves=False))


# Other statements: the buffers that they access stay.
def _rule_for(vectors: Mapping[str, Mapping[_VectorIndex, Buffer]]) -> Any:
    """Return the rewrite that replaces buffers by those of their vectors."""

    def rule(node: Node) -> Any | None:
        if isinstance(node, Allocate):
            split = vectors.get(node.buffer.name)
            return None if split is None else tuple(map(Allocate, split.values()))
        if not isinstance(node, ELEMENT_NODES) or node.buffer not in vectors:
            return None
        (*_, last) = node.indices
        vector_index = _vector_index(node.indices, last.lanes)
        assert vector_index is not None
        vector = vectors[node.buffer][vector_index]
        return replace(node, buffer=vector.name, indices=(replace(last, base=ZERO),))

    return rule


def _common_lanes(nodes: Iterable[Any]) -> Lanes | None:
    """Return the lanes of the scalable vectors that all accesses address; None if they differ, or if there
    are others."""
    all_lanes = {_lanes(node) for node in nodes}
    return all_lanes.pop() if len(all_lanes) == 1 else None


def _lanes(node: Any) -> Lanes | None:
    """Return the lanes of the consecutive elements that a node addresses; None if it does anything else."""
    # A check names the buffer as a whole, and a search reads a range of it.
    last = node.indices[-1] if isinstance(node, ELEMENT_NODES) else None
    if not isinstance(last, Ramp) or last.stride != ONE or not last.lanes.scalable:
        return None
    return last.lanes


def _vector_indices(nodes: Iterable[Any], lanes: Lanes) -> list[_VectorIndex] | None:
    """Return the indices of the vectors that accesses address, in order; None if one of them is not
    constant."""
    indices = {_vector_index(node.indices, lanes) for node in nodes}
    return None if None in indices else sorted(index for index in indices if index is not None)


def _vector_index(indices: tuple[Expr, ...], lanes: Lanes) -> _VectorIndex | None:
    """Return the index of a whole vector; None if it is not constant."""
    *outer, last = indices
    assert isinstance(last, Ramp)
    numbers = [integer_value(at) for at in outer]
    base = affine_of(last.base)
    elements = base.terms.get(VScale(), 0)
    is_whole = not base.constant and base.terms.keys() <= {VScale()}
    # Other vectors would overlap two of those.
    if not is_whole or elements < 0 or elements % lanes.count or None in numbers:
        return None
    return (*(number for number in numbers if number is not None), elements // lanes.count)
