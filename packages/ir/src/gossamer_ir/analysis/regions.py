"""Read and write regions: the box of each buffer that statements access.

A region is in terms of variables that are bound outside the statements; the region of a block is in terms
of its block variables. Each dimension extends from the least to the greatest index that is accessed,
assuming that the inner loops have an iteration. It is the whole dimension if these bounds are unknown: for
an indirect index without facts, a search, or an index read from a buffer that the function writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.accesses.buffer_accesses import Access, accesses, accesses_of_block
from gossamer_ir.analysis.accesses.linear_form import coefficient_and_rest
from gossamer_ir.analysis.lane_projection import lanes_of
from gossamer_ir.analysis.proofs.symbolic_bounds import SymbolicBounds
from gossamer_ir.arith.affine import ONE_FORM, Affine, affine_of, expr_of
from gossamer_ir.core.axis_kinds import indices_of, indptr_of, width_of
from gossamer_ir.core.build import ONE, ZERO, add, index, sub
from gossamer_ir.core.limits import MAX_SIZE
from gossamer_ir.nodes import (
    Axis,
    Block,
    Buffer,
    Expr,
    For,
    Function,
    Module,
    Node,
    Range,
    Region,
    Search,
    Stmt,
)
from gossamer_ir.traversal.buffer_definitions import all_buffers, buffers_allocated
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.walk import walk
from gossamer_support.items_by_name import items_by_name

_Ends: TypeAlias = tuple[Affine, Affine] | None
"""The least and the greatest index along a dimension; None for the whole dimension."""


class AccessedRegion(msgspec.Struct, frozen=True):
    """A region that contains all accessed elements. It is exact if every element of it is accessed,
    provided that each inner loop has an iteration."""

    region: Region
    is_exact: bool


class Regions(msgspec.Struct, frozen=True):
    """The regions that statements read and write, one for each buffer in the order of first access.
    Buffers that they allocate are left out."""

    reads: tuple[AccessedRegion, ...]
    writes: tuple[AccessedRegion, ...]

    def read_region(self, buffer_name: str) -> AccessedRegion | None:
        """Return the region that is read of a buffer; None if there is none."""
        return next((read for read in self.reads if read.region.buffer == buffer_name), None)


def regions_of(function: Function, body: tuple[Stmt, ...], *, is_clamped: bool = True) -> Regions:
    """Return the regions of statements in a function of the position or loop stage, in terms of the variables
    bound around them. For the body of a loop, these are the regions of one iteration.

    Unless `is_clamped`, a region may extend beyond the buffer; its extents are then simpler.

    >>> from gossamer_ir.script import parse_module, print_expr
    >>> (function,) = parse_module('''
    ... @T.prim_func
    ... def sums(x: T.handle, y: T.handle, n: T.int64) -> None:
    ...     X = T.match_buffer(x, (n, 4 * n), "float32")
    ...     Y = T.match_buffer(y, (n,), "float32")
    ...     for i in T.serial(n):
    ...         for j in T.serial(4):
    ...             Y[i] = Y[i] + X[i, 4 * i + j]
    ... ''').functions
    >>> (loop,) = function.body
    >>> accessed = regions_of(function, loop.body).read_region("X")
    >>> [(print_expr(at.start), print_expr(at.extent)) for at in accessed.region.ranges], accessed.is_exact
    ([('i', '1'), ('i * 4', '4')], True)
    """
    return _regions(function, body, accesses(body), is_clamped=is_clamped)


def block_regions(function: Function, block: Block) -> Regions:
    """Return the regions of a block (init, predicate and body), in terms of its block variables."""
    return _regions(function, (*block.init, *block.body), accesses_of_block(block))


def declare_regions(module: Module) -> Module:
    r"""Return the module with the derived regions of each block, which are printed as `T.reads` and
    `T.writes`.

    They replace declared regions. The module must be at the position or loop stage.

    >>> from gossamer_ir.script import parse_module, print_module
    >>> module = parse_module('''
    ... @T.prim_func
    ... def scale(x: T.handle, n: T.int64) -> None:
    ...     X = T.match_buffer(x, (n,), "float32")
    ...     for i in T.serial(n):
    ...         with T.block("scale"):
    ...             vi = T.axis.spatial(n, i)
    ...             X[vi] = X[vi] * 2.0
    ... ''')
    >>> print("\n".join(print_module(declare_regions(module)).splitlines()[-3:]))
                T.reads(X[vi])
                T.writes(X[vi])
                X[vi] = X[vi] * 2.0
    """
    functions = tuple(_with_declared_regions(function) for function in module.functions)
    return replace(module, functions=functions)


class _Box(msgspec.Struct, frozen=True):
    """The ends of each dimension of the accessed part of a buffer."""

    ends: tuple[_Ends, ...]
    is_exact: bool


def _with_declared_regions(function: Function) -> Function:
    def rule(node: Node) -> Node | None:
        if not isinstance(node, Block):
            return None
        regions = derived[node.name]
        return replace(
            node,
            reads=tuple(accessed.region for accessed in regions.reads),
            writes=tuple(accessed.region for accessed in regions.writes),
        )

    nodes = (node for stmt in function.body for node in walk(stmt))
    derived = {
        node.name: block_regions(function, node) for node in nodes if isinstance(node, Block)
    }
    return replace(function, body=rewrite_body(function.body, rule))


def _regions(
    function: Function,
    body: tuple[Stmt, ...],
    every: Iterable[Access],
    *,
    is_clamped: bool = True,
) -> Regions:
    allocated = buffers_allocated(body)
    boxes = _Boxes(function, body, is_clamped=is_clamped)
    for access in every:
        # A buffer that is allocated inside does not exist outside, so no region of it can be named.
        if access.buffer not in allocated:
            boxes.add(access)
    return Regions(boxes.accessed_regions(is_store=False), boxes.accessed_regions(is_store=True))


class _Boxes:
    """The bounding box of the accesses to each buffer, separately for reads and writes."""

    def __init__(self, function: Function, body: tuple[Stmt, ...], *, is_clamped: bool) -> None:
        self._is_clamped = is_clamped
        self._bounds = SymbolicBounds(function, body)
        self._shapes = dict(shapes_of(function))
        self._found: dict[tuple[bool, str], _Box] = {}

    def add(self, access: Access) -> None:
        # Separate boxes: what is only read may be wider than what is written, and primitives need each.
        key = (access.is_store, access.buffer)
        box, old = self._box(access), self._found.get(key)
        self._found[key] = box if old is None else self._hull(old, box)

    def accessed_regions(self, *, is_store: bool) -> tuple[AccessedRegion, ...]:
        return tuple(
            AccessedRegion(self._region(buffer, box), box.is_exact)
            for (kind, buffer), box in self._found.items()
            if kind == is_store
        )

    def _box(self, access: Access) -> _Box:
        is_certain = access.is_certain and not access.context.conditions
        shape = self._shapes[access.buffer]
        ends, loops = [], access.context.loops
        for at, extent in zip(access.indices, shape, strict=True):
            bounds = self._ends(at, loops)
            # An access that happens for sure is in bounds. Under a condition or in a loop that may
            # be empty, its bounds may lie outside of the buffer, so they are clamped.
            may_leave = not is_certain or bool(_loops_of_index(at, loops))
            if bounds is not None and may_leave and self._is_clamped:
                # A clamped search would be evaluated where the access is not.
                bounds = None if _is_searched(bounds) else self._bounds.within(*bounds, extent)
            ends.append(bounds)
        is_exact = is_certain and None not in ends and _is_exact(access)
        return _Box(tuple(ends), is_exact)

    def _ends(self, at: Expr | Range, loops: Sequence[For]) -> _Ends:
        if isinstance(at, Range):
            last = sub(add(at.start, at.extent), ONE)
            low, high = self._bounds.bounds(at.start, loops), self._bounds.bounds(last, loops)
            return None if low is None or high is None else (low[0], high[1])
        return self._bounds.bounds(at, loops)

    def _hull(self, first: _Box, second: _Box) -> _Box:
        pairs = list(zip(first.ends, second.ends, strict=True))
        # The bounding box of two exact boxes has gaps unless their union is a box.
        is_exact = first.is_exact and second.is_exact and _is_joined(pairs)
        return _Box(tuple(self._union(*pair) for pair in pairs), is_exact)

    def _union(self, first: _Ends, second: _Ends) -> _Ends:
        if first == second:
            return first
        if first is None or second is None or _is_searched(first) or _is_searched(second):
            return None
        low = self._bounds.extremum("min", first[0], second[0])
        return low, self._bounds.extremum("max", first[1], second[1])

    def _region(self, buffer_name: str, box: _Box) -> Region:
        pairs = zip(box.ends, self._shapes[buffer_name], strict=True)
        return Region(buffer_name, tuple(_range(ends, extent) for ends, extent in pairs))


def _range(ends: _Ends, extent: Expr) -> Range:
    if ends is None:
        return Range(ZERO, extent)
    low, high = ends
    count = high - low + ONE_FORM
    return Range(expr_of(low), expr_of(count))


def _is_searched(ends: tuple[Affine, Affine]) -> bool:
    return any(
        isinstance(node, Search) for form in ends for atom in form.terms for node in walk(atom)
    )


def _loops_of_index(at: Node, loops: Sequence[For]) -> frozenset[str]:
    """Return the loops on which an index depends."""
    return free_vars(at) & {loop.var for loop in loops}


def _is_exact(access: Access) -> bool:
    """Return whether each dimension is a single index, or that of a loop of its own with unit step and a
    range that does not depend on other loops."""
    used: list[str] = []
    for at in access.indices:
        names = _loops_of_index(at, access.context.loops)
        used += names
        # i + j covers an interval, but which elements depends on both;
        # i and i in two dimensions are a diagonal.
        if isinstance(at, Range) or lanes_of(at) is not None or len(names) > 1:
            return False
        if names and not _steps_by_one(at, *names):
            return False
    ranges = [
        part
        for loop in access.context.loops
        if loop.var in used
        for part in (loop.start, loop.extent)
    ]
    # A triangle, j < i, is not a box either.
    return len(set(used)) == len(used) and not any(
        _loops_of_index(at, access.context.loops) for at in ranges
    )


def _steps_by_one(at: Expr, name: str) -> bool:
    parts = coefficient_and_rest(affine_of(at), name)
    return parts is not None and parts[0].is_constant and abs(parts[0].constant) == 1


def _is_joined(pairs: Sequence[tuple[_Ends, _Ends]]) -> bool:
    """Return whether the union of two boxes is a box: they are equal, or differ in one dimension along which
    they overlap or are adjacent."""
    different = [pair for pair in pairs if pair[0] != pair[1]]
    return not different or (len(different) == 1 and _touch_or_overlap(*different[0]))


def _touch_or_overlap(first: _Ends, second: _Ends) -> bool:
    if first is None or second is None:
        return False
    gaps = [high - low for (low, _), (_, high) in ((first, second), (second, first))]
    # Adjacent: low of one is high of the other plus one.
    return all(gap.is_constant and gap.constant >= -1 for gap in gaps)


def shapes_of(function: Function) -> Iterator[tuple[str, tuple[Expr, ...]]]:
    """Yield the shape of each buffer of a function, including allocated ones. For a sparse buffer, the
    extents are the greatest numbers of positions in a fiber."""
    axes = items_by_name(function.axes)
    for buffer in all_buffers(function):
        if isinstance(buffer, Buffer):
            yield buffer.name, buffer.shape
        else:
            *outer, last = (_positions(axes[name]) for name in buffer.axes)
            extra = index(buffer.extra_storage)
            yield buffer.name, (*outer, add(last, extra))


def _positions(axis: Axis) -> Expr:
    indptr, indices = indptr_of(axis), indices_of(axis)
    if indptr is None:
        return width_of(axis)
    if indices is not None and not indices.unique:
        # With repeated coordinates, a fiber may have more elements than the axis has coordinates.
        return indptr.nnz or index(MAX_SIZE)
    return axis.length
