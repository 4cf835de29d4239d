"""Read and write regions: which box of each buffer statements touch.

A region is written in variables that are bound outside of the statements; a block's own region is
in its block variables. Each dimension runs from the least to the greatest index that is touched,
where the loops inside run at all; it is the whole of the buffer where an index says nothing about
that (an indirect one without facts, one that is searched, or one read from what the function
writes).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from gossamer_ir.analysis.accesses import Access, accesses, accesses_of_block
from gossamer_ir.analysis.lane_projection import lanes_of
from gossamer_ir.analysis.linear_form import along
from gossamer_ir.analysis.symbolic_bounds import Bounds
from gossamer_ir.arith.affine import Affine, affine_of, combine, expr_of
from gossamer_ir.core import build
from gossamer_ir.interchange.records import LARGEST_SIZE
from gossamer_ir.nodes import (
    Allocate,
    Axis,
    Block,
    Buffer,
    CompressedFixed,
    CompressedVaried,
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
from gossamer_ir.traversal.effects import all_buffers
from gossamer_ir.traversal.walk import collect, free_vars, rewrite_body, walk

_Ends: TypeAlias = tuple[Affine, Affine] | None
"""The least and the greatest index along a dimension, None for all of it."""


class Touched(msgspec.Struct, frozen=True):
    """A region that holds all that is touched. Exact: each element of it is touched, wherever every
    loop inside runs at least once."""

    region: Region
    is_exact: bool


class Regions(msgspec.Struct, frozen=True):
    """What statements read and write, a region for each buffer in the order of first access; buffers
    that they allocate are not among them."""

    reads: tuple[Touched, ...]
    writes: tuple[Touched, ...]

    def read(self, buffer: str) -> Touched | None:
        """What is read of a buffer, None where nothing is."""
        return next((found for found in self.reads if found.region.buffer == buffer), None)

    def written(self, buffer: str) -> Touched | None:
        """What is written of a buffer, None where nothing is."""
        return next((found for found in self.writes if found.region.buffer == buffer), None)


def regions_of(function: Function, body: tuple[Stmt, ...]) -> Regions:
    """The regions of statements that stand in a function of the position or loop stage, in terms of
    the variables around them: for the body of a loop, those of one iteration.

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
    >>> found = regions_of(function, loop.body).read("X")
    >>> [(print_expr(at.start), print_expr(at.extent)) for at in found.region.ranges], found.is_exact
    ([('i', '1'), ('i * 4', '4')], True)
    """
    return _regions(function, body, accesses(body))


def block_regions(function: Function, block: Block) -> Regions:
    """The regions of a block of a function, in terms of its block variables: of its init, its
    predicate and its body."""
    return _regions(function, (*block.init, *block.body), accesses_of_block(block))


def declare_regions(module: Module) -> Module:
    r"""Gives each block of a module of the position or loop stage its derived regions, which the
    printer shows as `T.reads` and `T.writes`; those that were declared are replaced.

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
    functions = tuple(_declared(function) for function in module.functions)
    return msgspec.structs.replace(module, functions=functions)


class _Box(msgspec.Struct, frozen=True):
    """The ends of each dimension of what is touched of a buffer."""

    ends: tuple[_Ends, ...]
    is_exact: bool


def _declared(function: Function) -> Function:
    def rule(node: Node) -> Node | None:
        if not isinstance(node, Block):
            return None
        found = derived[node.name]
        return msgspec.structs.replace(
            node,
            reads=tuple(touched.region for touched in found.reads),
            writes=tuple(touched.region for touched in found.writes),
        )

    nodes = (node for stmt in function.body for node in walk(stmt))
    derived = {
        node.name: block_regions(function, node) for node in nodes if isinstance(node, Block)
    }
    return msgspec.structs.replace(function, body=rewrite_body(function.body, rule))


def _regions(function: Function, body: tuple[Stmt, ...], found: Iterable[Access]) -> Regions:
    own = {node.buffer.name for stmt in body for node in collect(Allocate, stmt)}
    boxes = _Boxes(function, body)
    for access in found:
        if access.buffer not in own:
            boxes.add(access)
    return Regions(boxes.touched(is_store=False), boxes.touched(is_store=True))


class _Boxes:
    """The box of each buffer that is read or written, which grows with each access."""

    def __init__(self, function: Function, body: tuple[Stmt, ...]) -> None:
        self._bounds = Bounds(function, body)
        self._shapes = dict(shapes_of(function))
        self._found: dict[tuple[bool, str], _Box] = {}

    def add(self, access: Access) -> None:
        key = (access.is_store, access.buffer)
        box, old = self._box(access), self._found.get(key)
        self._found[key] = box if old is None else self._hull(old, box)

    def touched(self, *, is_store: bool) -> tuple[Touched, ...]:
        return tuple(
            Touched(self._region(buffer, box), box.is_exact)
            for (kind, buffer), box in self._found.items()
            if kind == is_store
        )

    def _box(self, access: Access) -> _Box:
        is_certain = access.is_certain and not access.held.conditions
        shape = self._shapes[access.buffer]
        ends, loops = [], access.held.loops
        for at, extent in zip(access.indices, shape, strict=True):
            found = self._ends(at, loops)
            if found is not None and (not is_certain or _moving(at, loops)):
                found = None if _is_searched(found) else self._bounds.within(*found, extent)
            ends.append(found)
        is_exact = is_certain and None not in ends and _is_exact(access)
        return _Box(tuple(ends), is_exact)

    def _ends(self, at: Expr | Range, loops: Sequence[For]) -> _Ends:
        if isinstance(at, Range):
            last = build.sub(build.add(at.start, at.extent), build.ONE)
            low, high = self._bounds.of(at.start, loops), self._bounds.of(last, loops)
            return None if low is None or high is None else (low[0], high[1])
        return self._bounds.of(at, loops)

    def _hull(self, first: _Box, second: _Box) -> _Box:
        pairs = list(zip(first.ends, second.ends, strict=True))
        is_exact = first.is_exact and second.is_exact and _is_joined(pairs)
        return _Box(tuple(self._joined(*pair) for pair in pairs), is_exact)

    def _joined(self, first: _Ends, second: _Ends) -> _Ends:
        if first == second:
            return first
        if first is None or second is None or _is_searched(first) or _is_searched(second):
            return None
        low = self._bounds.chosen("min", first[0], second[0])
        return low, self._bounds.chosen("max", first[1], second[1])

    def _region(self, buffer: str, box: _Box) -> Region:
        pairs = zip(box.ends, self._shapes[buffer], strict=True)
        return Region(buffer, tuple(_range(ends, extent) for ends, extent in pairs))


def _range(ends: _Ends, extent: Expr) -> Range:
    if ends is None:
        return Range(build.ZERO, extent)
    low, high = ends
    count = combine(combine(high, low, -1), Affine({}, 1), 1)
    return Range(expr_of(low), expr_of(count))


def _is_searched(ends: tuple[Affine, Affine]) -> bool:
    return any(
        isinstance(node, Search) for form in ends for atom in form.terms for node in walk(atom)
    )


def _moving(at: Node, loops: Sequence[For]) -> frozenset[str]:
    """The loops that an index depends on."""
    return free_vars(at) & {loop.var for loop in loops}


def _is_exact(access: Access) -> bool:
    """Whether each dimension is one index, or that of a loop of its own whose range is fixed."""
    used: list[str] = []
    for at in access.indices:
        names = _moving(at, access.held.loops)
        used += names
        if isinstance(at, Range) or lanes_of(at) is not None or len(names) > 1:
            return False
        if names and not _steps_by_one(at, *names):
            return False
    ranges = [
        part for loop in access.held.loops if loop.var in used for part in (loop.start, loop.extent)
    ]
    return len(set(used)) == len(used) and not any(_moving(at, access.held.loops) for at in ranges)


def _steps_by_one(at: Expr, name: str) -> bool:
    parts = along(affine_of(at), name)
    return parts is not None and parts[0].is_constant and abs(parts[0].constant) == 1


def _is_joined(pairs: Sequence[tuple[_Ends, _Ends]]) -> bool:
    """Whether two boxes make one: they are equal, or touch along the one dimension they differ in."""
    different = [pair for pair in pairs if pair[0] != pair[1]]
    return not different or (len(different) == 1 and _meet(*different[0]))


def _meet(first: _Ends, second: _Ends) -> bool:
    if first is None or second is None:
        return False
    gaps = [combine(high, low, -1) for (low, _), (_, high) in ((first, second), (second, first))]
    return all(gap.is_constant and gap.constant >= -1 for gap in gaps)


def shapes_of(function: Function) -> Iterator[tuple[str, tuple[Expr, ...]]]:
    """The shape of each buffer of a function, also of those it allocates; at the position stage how
    many positions a fibre has at most."""
    axes = {axis.name: axis for axis in function.axes}
    for buffer in all_buffers(function):
        if isinstance(buffer, Buffer):
            yield buffer.name, buffer.shape
        else:
            *outer, last = (_positions(axes[name]) for name in buffer.axes)
            extra = build.index(buffer.extra_storage)
            yield buffer.name, (*outer, build.add(last, extra))


def _positions(axis: Axis) -> Expr:
    match axis:
        case CompressedFixed():
            return axis.width
        case CompressedVaried(unique=False):
            return axis.nnz or build.index(LARGEST_SIZE)
    return axis.length
