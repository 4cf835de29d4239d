"""Position stage to loop stage: sparse buffers become ordinary ones.

Varied dimensions are flattened into their parents, fixed ones stay dimensions of their own:
`A[vi, vj]` over (I, J) of CSR becomes `A_data[J_indptr[vi] + vj]`, a BSR buffer `[nnzb, b, b]`. What
is known of the axes becomes facts about their index buffers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeGuard, TypeVar

import msgspec

from gossamer_ir import build
from gossamer_ir.affine import Affine, affine_of, combine, expr_of, normal_form
from gossamer_ir.atomics import ATOMIC, is_atomic, mark_of, shared_names
from gossamer_ir.lasting import NAMING_FIELDS
from gossamer_ir.names import Namer, namer_of, names_of
from gossamer_ir.nodes import (
    AnyBuffer,
    Axis,
    Block,
    Buffer,
    Combine,
    Compare,
    CompressedFixed,
    CompressedVaried,
    DenseVaried,
    Expr,
    Fact,
    For,
    Function,
    Guard,
    HasValue,
    If,
    IfThenElse,
    InRange,
    Load,
    Module,
    Monotone,
    PaddedSlots,
    Prefetch,
    ProductSteps,
    Range,
    Region,
    Relation,
    Search,
    Select,
    SortedSegments,
    SparseBuffer,
    Stmt,
    Store,
    Var,
)  # fmt: skip
from gossamer_ir.simplify import TRUE
from gossamer_ir.walk import LEAVES, map_children, rewrite, statements, walk
from gossamer_lower.index_buffers import IndexBuffers, Varied
from gossamer_lower.lookups import Place
from gossamer_lower.proved_conditions import without_proved
from gossamer_lower.relations import relations_of_fibres
from gossamer_lower.stages import map_functions
from gossamer_lower.storage import Check, Fibre, Storage, element, found_by_search, relative

A = TypeVar("A", Load, Store, Prefetch)


def lower_buffers(module: Module) -> Module:
    """Flattens the sparse buffers of a position-stage module; the result is at the loop stage.

    Raises `UnsupportedError` (`lower.storage`) for storage that nothing says the offsets of.

    >>> from gossamer_lower import lower_iterations
    >>> from gossamer_lower.examples import ROW_SUMS, body_text
    >>> before = lower_iterations(ROW_SUMS)
    >>> print(body_text(before))
    for i in T.serial(m):
        for j in T.serial(J_indptr[i + 1] - J_indptr[i]):
            with T.block("sums"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    Y[vi] = 0.0
                Y[vi] = Y[vi] + A[vi, vj]
    >>> print(body_text(lower_buffers(before)))
    for i in T.serial(m):
        for j in T.serial(J_indptr[i + 1] - J_indptr[i]):
            with T.block("sums"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    Y_data[vi] = 0.0
                Y_data[vi] = Y_data[vi] + A_data[J_indptr[vi] + vj]
    """
    return map_functions(module, "position", "loop", _lower_function)


def _lower_function(function: Function) -> Function:
    lowering = _Lowering(function)
    body = lowering.body(function.body)
    buffers = lowering.buffers(function)
    facts = tuple(dict.fromkeys((*lowering.stated(function.facts), *lowering.facts())))
    lowered = msgspec.structs.replace(
        function, axes=(), relations=(), buffers=buffers, body=body, facts=facts
    )
    checks = lowering.checks()
    return without_proved(lowered, checks) if checks else lowered


def _declared_before_use(buffers: list[Buffer]) -> tuple[Buffer, ...]:
    """Buffers in their order, but each behind those that its size is read from."""
    names = {buffer.name: buffer for buffer in buffers}
    result: dict[str, Buffer] = {}

    def declare(buffer: Buffer) -> None:
        for size in buffer.shape:
            for node in walk(size):
                if isinstance(node, Load) and node.buffer not in result:
                    declare(names[node.buffer])
        result.setdefault(buffer.name, buffer)

    for buffer in buffers:
        declare(buffer)
    return tuple(result.values())


class _Lowering:
    """The tables of one function."""

    def __init__(self, function: Function) -> None:
        self._axes = {axis.name: axis for axis in function.axes}
        self._relations = tuple(relations_of_fibres(function))
        sparse = [found for found in function.buffers if isinstance(found, SparseBuffer)]
        self._sparse = {buffer.name: buffer for buffer in sparse}
        self._by_handle = {buffer.handle: buffer for buffer in sparse if buffer.handle is not None}
        self._names = self._ordinary_names(function)
        self._ranges = _ranges(function)
        self._extents: dict[str, Expr] = {}
        self._storage = Storage(self._axes, self._read_offset, ranges=self._ranges)
        self.offsets: dict[str, Buffer] = {}
        self._added: list[SparseBuffer] = []
        self._namer = Namer((*names_of(function), *self._names.values()))
        self._add_offsets(self._namer, sparse)
        self._flat = {
            buffer.name: self._names[found.name]
            for buffer in function.buffers
            if (found := self._indptr_of(buffer)) is not None
        }

    def _add_offsets(self, namer: Namer, buffers: list[SparseBuffer]) -> None:
        for buffer in buffers:
            handle = buffer.offsets
            if handle is not None and handle not in (*self._by_handle, *self.offsets):
                found = self._storage.offsets(buffer, namer.fresh(f"{buffer.name}_offsets"))
                if found is not None:
                    self.offsets[handle] = found

    def _indptr_of(self, buffer: AnyBuffer) -> SparseBuffer | None:
        """The indptr of an axis that an ordinary buffer is another name for."""
        if not isinstance(buffer, Buffer) or len(buffer.shape) != 1:
            return None
        found = self._by_handle.get(buffer.handle or "")
        return found if found is not None and found.extra_storage else None

    def is_flat(self, buffer: AnyBuffer) -> bool:
        """Whether a buffer is another name for an index buffer, which replaces it."""
        return buffer.name in self._flat

    def _ordinary_names(self, function: Function) -> dict[str, str]:
        """Index buffers keep their name, buffers of values get `_data`."""
        index_handles = {getattr(axis, "indptr", None) for axis in function.axes}
        index_handles |= {getattr(axis, "indices", None) for axis in function.axes}
        namer = namer_of(function)
        return {
            buffer.name: buffer.name
            if buffer.handle is not None and buffer.handle in index_handles
            else namer.fresh(f"{buffer.name}_data")
            for buffer in self._sparse.values()
        }

    # --- storage

    def ordinary(self, buffer: AnyBuffer) -> Buffer:
        """The ordinary buffer with the same elements."""
        if isinstance(buffer, Buffer):
            return map_children(buffer, self.node)
        storage = self._storage
        shape = tuple(storage.extent(found) for found in storage.dimensions(buffer))
        if buffer.extra_storage:
            size = shape[0] if shape else build.ONE
            for extent in shape[1:]:
                size = build.mul(size, extent)
            shape = (build.add(size, build.index(buffer.extra_storage)),)
        return Buffer(self._names[buffer.name], shape, buffer.dtype, buffer.handle, buffer.scope)

    def buffers(self, function: Function) -> tuple[Buffer, ...]:
        """The ordinary buffers, with those of index arrays that the function declares no buffer for: the
        caller passes them, and facts about them are checked."""
        for axis in function.axes:
            for handle in (getattr(axis, "indptr", None), getattr(axis, "indices", None)):
                if handle is not None and handle not in self._by_handle:
                    self._declare(handle)
        bound = [self.ordinary(found) for found in function.buffers if not self.is_flat(found)]
        added: list[Buffer] = []
        while len(added) < len(self._added):
            added.append(self.ordinary(self._added[len(added)]))
        return _declared_before_use([*bound, *added, *self.offsets.values()])

    def _declare(self, handle: str) -> SparseBuffer:
        """An index array of an axis that the function declares no buffer for."""
        declared = IndexBuffers(self._axes.values(), self._namer).declared()
        buffer = next(found for found in declared if found.handle == handle)
        assert isinstance(buffer, SparseBuffer)
        self._sparse[buffer.name] = self._by_handle[handle] = buffer
        self._names[buffer.name] = buffer.name
        self._added.append(buffer)
        return buffer

    def _read_offset(self, handle: str, position: Expr) -> Expr:
        """An element of an indptr, or of the offsets of a buffer."""
        buffer = self._by_handle.get(handle)
        if buffer is None and handle not in self.offsets:
            buffer = self._declare(handle)
        if buffer is None:
            offsets = self.offsets[handle]
            return build.widen(Load(offsets.name, (position,), offsets.dtype))
        return build.widen(Load(self._names[buffer.name], (position,), buffer.dtype))

    # --- accesses

    def checks(self) -> dict[Expr, Check]:
        """What is asked in the function to find out whether positions lie in their fibres."""
        return self._storage.checks

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Statements with their accesses rewritten."""
        return tuple(found for stmt in body for found in _several(self.node(stmt)))

    def node(self, node: Any) -> Any:
        """A statement or expression with its accesses rewritten; several statements where it is guarded."""
        if type(node) in LEAVES:
            return node
        if isinstance(node, Region) and node.buffer in self._sparse:
            return self._region(node)
        if isinstance(node, Combine):
            return self._combine(node)
        lowered = map_children(node, self.node)
        if isinstance(lowered, For):
            return self._loop(lowered)
        if isinstance(lowered, (Load, Search, Region)) and lowered.buffer in self._flat:
            return msgspec.structs.replace(lowered, buffer=self._flat[lowered.buffer])
        if isinstance(lowered, Guard):
            return self._guard(lowered)
        if isinstance(lowered, Compare):
            return _absolute(lowered)
        if isinstance(lowered, (Load, Search, Store, Prefetch)) and lowered.buffer in self._sparse:
            return self._access(lowered)
        return lowered

    def _loop(self, loop: For) -> For:
        """A loop whose mark names the buffers that its iterations share."""
        names = shared_names(loop) if is_atomic(loop) else None
        if names is None:
            return loop
        mark = mark_of(self._names.get(name, name) for name in names)
        annotations = tuple(mark if item[0] == ATOMIC else item for item in loop.annotations)
        return msgspec.structs.replace(loop, annotations=annotations)

    def _access(self, node: Load | Search | Store | Prefetch) -> Any:
        match node:
            case Load():
                return self._load(node)
            case Search():
                return self._search(node)
            case Store():
                return self._store(node)
        return self._moved(node)

    def _load(self, load: Load) -> Expr:
        """A load that reads the fill value, where a position may lie beyond a varied fibre."""
        buffer = self._sparse[load.buffer]
        present = self._present(buffer, load.indices)
        if present is None:
            return self._moved(load)
        plain = msgspec.structs.replace(load, predicate=None, passthrough=None)
        found = IfThenElse(present, self._moved(plain), build.fill_of(buffer))
        if load.predicate is None or load.passthrough is None:
            return found
        return IfThenElse(load.predicate, found, load.passthrough)

    def _store(self, store: Store) -> Store | tuple[Stmt, ...]:
        """A store behind a guard, where a position may lie beyond a varied fibre."""
        present = self._present(self._sparse[store.buffer], store.indices)
        if present is None:
            return self._moved(store)
        guard = Guard(present, self._names[store.buffer])
        plain = self._moved(msgspec.structs.replace(store, predicate=None))
        return (guard, plain) if store.predicate is None else (If(store.predicate, (guard, plain)),)

    def _combine(self, node: Combine) -> tuple[Stmt, ...]:
        """All elements, behind the guards of those that may be absent."""
        parts = [part for store in node.stores for part in _several(self.node(store))]
        stores = tuple(part for part in parts if isinstance(part, Store))
        guards = (part for part in parts if not isinstance(part, Store))
        return (*guards, msgspec.structs.replace(node, stores=stores))

    def _moved(self, access: A) -> A:
        """An access of the ordinary buffer instead of the sparse one."""
        indices = self._indices(self._sparse[access.buffer], access.indices)
        return msgspec.structs.replace(access, buffer=self._names[access.buffer], indices=indices)

    def _present(self, buffer: SparseBuffer, positions: tuple[Expr, ...]) -> Expr | None:
        """That positions lie in the fibres of varied axes; None where that is plain to see."""
        place = Place()
        for fibre in self._storage.fibres(buffer, positions):
            place.add(*self._conditions(fibre))
        return place.is_present()

    def _conditions(self, fibre: Fibre) -> Iterator[Compare]:
        """What must hold for a position to lie in its fibre, but for what is plain to see."""
        form, extent = affine_of(fibre.position), fibre.extent()
        variable, walked = _one_variable(form), None
        if variable is not None and form.constant >= 0:
            walked = self._walked(variable)
        if walked is not None:
            exceeding = self._exceeds(walked, extent)
            if exceeding is not None and exceeding + form.constant <= 0:
                return
        found = found_by_search(fibre.inner(), fibre.start)
        is_found = None
        if found is not None and self._exceeds(found.begin, fibre.start) == 0:
            exceeding = self._exceeds(found.end, fibre.end)
            if exceeding is not None and exceeding <= 0:
                is_found = Compare("ge", found, build.ZERO)
        check = Check(fibre.inner(), fibre.length(), is_found)
        is_plain = form.constant >= 0 if not form.terms else walked is not None
        if not is_plain:
            yield self._storage.proved_by(check, "ge", fibre.position, extent)
        yield self._storage.proved_by(check, "lt", fibre.position, extent)

    def _unchecked(self, expr: Expr) -> Expr:
        """An expression where all checks in it succeed, as they do where a position is asked about: those
        along the axes above are asked before."""

        def unchecked(node: Any) -> Any | None:
            is_checked = isinstance(node, IfThenElse) and self._storage.is_check(node.condition)
            return node.if_true if is_checked else None

        result: Expr = rewrite(expr, unchecked, leaves=False)
        return result

    def _walked(self, variable: Var) -> Expr | None:
        """How far a variable of a loop or block that starts at 0 goes where it has a value."""
        extent = self._ranges.get(variable.name)
        if extent is None:
            return None
        if variable.name not in self._extents:
            lowered: Expr = self._unchecked(self.node(extent))
            while isinstance(lowered, IfThenElse) and lowered.if_false == build.ZERO:
                lowered = lowered.if_true
            self._extents[variable.name] = lowered
        return self._extents[variable.name]

    def _guard(self, guard: Guard) -> Guard:
        name = self._names.get(guard.buffer, guard.buffer)
        return msgspec.structs.replace(guard, buffer=name)

    def _region(self, region: Region) -> Region:
        """Declared regions of sparse buffers widen to the whole buffer."""
        ordinary = self.ordinary(self._sparse[region.buffer])
        ranges = tuple(Range(build.ZERO, extent) for extent in ordinary.shape)
        return Region(ordinary.name, ranges)

    def _search(self, node: Search) -> Expr:
        """A search in one fibre as one in the whole array, its result relative to the fibre; one with a
        window beyond the fibre is out of bounds."""
        buffer = self._sparse[node.buffer]
        *prefix, start = self._indices(buffer, (*node.prefix, build.ZERO))
        begin, end = build.add(start, node.begin), element(start, node.end)
        fibres = list(self._storage.fibres(buffer, (*node.prefix, node.begin)))
        if isinstance(self._axes[buffer.axes[-1]], Varied):
            own = fibres.pop()
            extent: Expr | None = own.extent()
            if self._exceeds(node.end, own.length()) == 0:
                end = own.end
        else:
            extent = self._storage.rest(buffer)
        place = Place()
        for fibre in fibres:
            place.add(*self._conditions(fibre))
        if extent is not None:
            place.add(*self._window(node, extent))
        inside = place.is_present()
        if inside is not None:
            inside = IfThenElse(Compare("ge", node.begin, node.end), TRUE, inside)
            begin = IfThenElse(inside, begin, build.index(-1))
            end = IfThenElse(inside, end, build.ZERO)
        found = msgspec.structs.replace(
            node, buffer=self._names[node.buffer], prefix=tuple(prefix), begin=begin, end=end
        )
        if start == build.ZERO:
            return found
        return relative(found, start) if node.kind == "exact" else build.sub(found, start)

    def _window(self, node: Search, extent: Expr) -> Iterator[Compare]:
        """What must hold for the window of a search to lie in its fibre, but for what is plain to see."""
        end, begin = build.add(extent, build.ONE), build.integer_value(node.begin)
        if begin is None or begin < 0:
            yield self._storage.check("ge", node.begin, end)
        exceeding = self._exceeds(node.end, extent)
        if exceeding is None or exceeding > 0:
            yield self._storage.check("lt", node.end, end)

    def _exceeds(self, value: Expr, extent: Expr) -> int | None:
        """How much more a value is than an extent, where that is plain to see."""
        form, other = (normal_form(self._unchecked(found)) for found in (value, extent))
        rest = combine(form, other, -1)
        return rest.constant if rest.is_constant else None

    def _indices(self, buffer: SparseBuffer, positions: tuple[Expr, ...]) -> tuple[Expr, ...]:
        by_axis = dict(zip(buffer.axes, positions, strict=True))
        dimensions = self._storage.dimensions(buffer)
        offsets = [self._storage.offset(found, by_axis) for found in dimensions]
        if not buffer.extra_storage:
            return tuple(offsets)
        offset: Expr = build.ZERO
        for dimension, part in zip(dimensions, offsets, strict=True):
            offset = element(build.mul(offset, self._storage.extent(dimension)), part)
        return (offset,)

    # --- facts

    def stated(self, facts: tuple[Fact, ...]) -> Iterator[Fact]:
        """What is stated of sparse buffers, of the ordinary ones; what is stated of each row is not, where
        all rows become one."""
        ordinary = self._names | self._flat
        for fact in facts:
            if not (_is_of_each_row(fact) and self._joins_rows(fact.buffer)):
                fields = {field: getattr(fact, field, None) for field in NAMING_FIELDS}
                names = {
                    field: ordinary[name] for field, name in fields.items() if name in ordinary
                }
                yield msgspec.structs.replace(map_children(fact, self.node), **names)

    def _joins_rows(self, name: str) -> bool:
        buffer = self._sparse.get(name)
        return buffer is not None and len(self.ordinary(buffer).shape) < len(buffer.axes)

    def facts(self) -> list[Fact]:
        """What the axes promise, as facts about their index buffers."""
        found: list[Fact] = []
        for axis in self._axes.values():
            found += self._facts_of(axis)
        for offsets in self.offsets.values():
            found += _offset_facts(offsets)
        for buffer in self._sparse.values():
            found += self._product_facts(buffer)
        return [*found, *self._relation_facts()]

    def _facts_of(self, axis: Axis) -> list[Fact]:
        facts: list[Fact] = []
        indptr = self._index_name(getattr(axis, "indptr", None))
        if indptr is not None and isinstance(axis, (DenseVaried, CompressedVaried)):
            facts += [
                InRange(indptr, build.ZERO, build.add(self._storage.nnz(axis), build.ONE)),
                Monotone(indptr),
                HasValue(indptr, build.ZERO, build.ZERO),
            ]
            if axis.nnz is not None:
                facts.append(HasValue(indptr, self._last(axis.indptr), axis.nnz))
        indices = self._index_name(getattr(axis, "indices", None))
        if indices is not None and isinstance(axis, (CompressedFixed, CompressedVaried)):
            high = build.add(axis.length, build.ONE) if axis.padded else axis.length
            facts.append(InRange(indices, build.ZERO, high))
            facts += [SortedSegments(indices, indptr, axis.unique)] if axis.sorted else []
            facts += [PaddedSlots(indices, axis.length)] if axis.padded else []
        return facts

    def _product_facts(self, buffer: SparseBuffer) -> Iterator[Fact]:
        """The offsets of a buffer are the prefix sums of products of lengths."""
        offsets = self.offsets.get(buffer.offsets or "")
        names = [self._index_name(handle) for handle in self._storage.multiplied(buffer)]
        match offsets, names:
            case Buffer(name=name), [str() as left, str() as right]:
                yield ProductSteps(name, left, right)

    def _last(self, handle: str) -> Expr:
        """The index of the last element of an indptr."""
        (extent,) = self.ordinary(self._by_handle[handle]).shape
        return _before(extent)

    def _index_name(self, handle: str | None) -> str | None:
        buffer = self._by_handle.get(handle) if handle is not None else None
        return None if buffer is None else self._names[buffer.name]

    def _relation_facts(self) -> Iterator[Fact]:
        """Relations between axes as relations between the fibres of their index buffers."""
        for found in self._relations:
            left, right = (self._axes[name] for name in (found.left, found.right))
            names = [self._index_name(getattr(axis, "indices", None)) for axis in (left, right)]
            match names:
                case [str() as one, str() as two]:
                    yield Relation(found.kind, one, two)


def _one_variable(form: Affine) -> Var | None:
    """The variable that a form is, or is a constant more than."""
    match list(form.terms.items()):
        case [(Var() as variable, 1)]:
            return variable
    return None


def _several(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


def _is_of_each_row(fact: Fact) -> TypeGuard[Monotone | SortedSegments]:
    return isinstance(fact, Monotone) or (isinstance(fact, SortedSegments) and fact.indptr is None)


def _ranges(function: Function) -> dict[str, Expr]:
    """How far the variables of loops and blocks that start at 0 go."""
    found: dict[str, Expr] = {}
    for stmt in statements(function.body):
        if isinstance(stmt, For) and stmt.start == build.ZERO:
            found[stmt.var] = stmt.extent
        for iterator in stmt.iters if isinstance(stmt, Block) else ():
            if iterator.domain.start == build.ZERO:
                found[iterator.var] = iterator.domain.extent
    return found


def _offset_facts(offsets: Buffer) -> list[Fact]:
    """Offsets start at 0, never decrease, and none exceeds the last."""
    total = build.widen(Load(offsets.name, (_before(offsets.shape[0]),), offsets.dtype))
    return [
        InRange(offsets.name, build.ZERO, build.add(total, build.ONE)), Monotone(offsets.name),
        HasValue(offsets.name, build.ZERO, build.ZERO),
    ]  # fmt: skip


def _before(extent: Expr) -> Expr:
    return expr_of(affine_of(build.sub(extent, build.ONE)))


def _absolute(condition: Compare) -> Compare:
    """Whether a coordinate was found, without the place of its fibre."""
    match condition:
        case Compare(op="ge", lhs=Select(if_true=Search() as found), rhs=zero) if (
            zero == build.ZERO
        ):
            return Compare("ge", found, zero)
    return condition
