"""The pattern of a reduction over the fiber of a row, for each row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from gossamer_ir.analysis.guarded_bodies import without_guard
from gossamer_ir.analysis.reductions import match_reduction
from gossamer_ir.arith.prover import Prover
from gossamer_ir.core.axis_kinds import indices_of, indptr_of, is_full, is_varied, width_of
from gossamer_ir.core.build import ZERO, index_var, integer_value
from gossamer_ir.core.conditions import in_range
from gossamer_ir.core.lowered_names import data_name, indptr_name, words_name
from gossamer_ir.dependence.access_forms import has_aliasing_indices
from gossamer_ir.nodes import (
    Axis,
    Binary,
    Function,
    Iteration,
    Load,
    Module,
    OverAxis,
    SparseBuffer,
    Store,
    Var,
)
from gossamer_ir.support.identity_cache import memoize_by_identity
from gossamer_ir.traversal.references import free_vars
from gossamer_ir.traversal.walk import statements, walk
from gossamer_schedule.definition.made_names import cache_name, copy_block_name, is_made_from
from gossamer_schedule.rules.patterns.regular_reads import (
    is_dense_root,
    reads_regularly,
    reads_whole_rows,
    selects_by_ragged,
)


class RowReduction(msgspec.Struct, frozen=True):
    """`out[i, k...] = reduction over j of ...` with j in the fiber of row i, or the same combined with the
    old value of `out[i, k...]`.

    Rows are those of a dense axis or the stored ones of a compressed axis with one fiber. A fiber is varied
    (CSR, ragged) or of fixed width (ELL). A row may have several varied fibers, one for each word of columns
    (a bitmask): `words` are the loops over these, and their body may have a condition, since the last word
    extends beyond the row. Names of loops, the block and the output are those of the loop
    stage. `features` is the extent of the loop `feature` (None: symbolic), which is "" if there is no such
    loop. `before` is the text of the number of slots before a row ("": unknown), `width` the slots of each
    row (None: they vary, or are symbolic). `is_contiguous` is true if terms are read from consecutive
    positions, `is_regular` if vectors can read (`reads_regularly`) and combine them.
    """

    block: str
    row: str
    position: str
    feature: str
    features: int | None
    output: str
    dtype: str
    before: str
    width: int | None
    is_contiguous: bool
    is_regular: bool
    words: tuple[str, ...] = ()

    @property
    def reduction(self) -> str:
        """Return the outermost loop of the reduction."""
        return (*self.words, self.position)[0]

    @property
    def text(self) -> str:
        """Return the pattern in words."""
        element = f"{self.row}, {self.feature}" if self.feature else self.row
        return (
            f"each element {self.output}[{element}] reduces over {self.position}, the stored columns "
            f"of row {self.row}"
        )


class _Roles(msgspec.Struct, frozen=True):
    """The axes of an iteration by role. Roots have one element each."""

    roots: tuple[Axis, ...]
    row: Axis
    words: tuple[Axis, ...]
    fiber: Axis
    features: tuple[Axis, ...]


@memoize_by_identity
def sparse_reduction(module: Module) -> RowReduction | None:
    """Return the pattern of a coordinate module of one iteration; None for any other program."""
    found = single_iteration(module)
    if found is None:
        return None
    function, iteration = found
    roles = _roles(axes_of(function, iteration))
    if roles is None or not _has_kinds(iteration, roles):
        return None
    return _pattern(function, iteration, roles)


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
    iteration = function.body[0]
    stored = {node.buffer for node in statements((iteration,)) if isinstance(node, Store)}
    if any(has_aliasing_indices(buffer) for buffer in function.buffers if buffer.name in stored):
        return None
    return function, iteration


def axes_of(function: Function, iteration: Iteration) -> tuple[Axis, ...]:
    """Return the axes of an iteration; none if some are fused or attached."""
    by_name = {axis.name: axis for axis in function.axes}
    over = [by_name[item.axis] for item in iteration.axes if isinstance(item, OverAxis)]
    return tuple(over) if len(over) == len(iteration.axes) else ()


def _roles(axes: tuple[Axis, ...]) -> _Roles | None:
    """Return the row, its fiber and at most one axis of features, and before a stored row its root."""
    count = 1 if _is_stored_row(axes) else 0
    roots, found = axes[:count], axes[count:]
    words = () if roots else _words(found)
    if len(found) - len(words) not in (2, 3):
        return None
    row, fiber, *features = (found[0], *found[1 + len(words) :])
    if not (roots or is_dense_root(row)) or is_full(fiber):
        return None
    dense = tuple(axis for axis in features if is_dense_root(axis))
    above = (row, *words)[-1]
    is_reduced = fiber.parent == above.name and len(dense) == len(features)
    return _Roles(roots, row, words, fiber, dense) if is_reduced else None


def _words(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """Return the dense axes between a row and a bitmask below it."""
    words: list[Axis] = []
    for above, axis in pairwise(axes):
        if axis.parent != above.name or not is_full(axis):
            indices = indices_of(axis)
            return tuple(words) if indices is not None and indices.is_mask else ()
        words.append(axis)
    return ()


def _is_stored_row(axes: tuple[Axis, ...]) -> bool:
    """Return whether rows are the distinct coordinates of the one fiber of a compressed axis."""
    if len(axes) < 3 or not is_dense_root(axes[0]):
        return False
    root, row, fiber = axes[:3]
    indices = indices_of(row)
    if indices is None or indices.padded or not indices.is_searchable:
        return False
    has_one_fiber = row.parent == root.name and integer_value(axes[0].length) == 1
    return has_one_fiber and fiber.parent == row.name


def _has_kinds(iteration: Iteration, roles: _Roles) -> bool:
    reduced = "R" * (len(roles.words) + 1)
    return iteration.kinds[len(roles.roots) :] == f"S{reduced}" + "S" * len(roles.features)


def _pattern(function: Function, iteration: Iteration, roles: _Roles) -> RowReduction | None:
    row, *others = iteration.vars[len(roles.roots) :]
    words, (position, *features) = others[: len(roles.words)], others[len(roles.words) :]
    if roles.words:
        body, guard = without_guard(iteration.body)
        if guard is not None and not free_vars(guard).isdisjoint(features):
            return None
        iteration = msgspec.structs.replace(iteration, body=body)
    output = _output(function, iteration, element=(row, *features))
    names = {indptr_name(axis.name) for axis in (*roles.roots, roles.row, roles.fiber)}
    names |= {words_name(roles.fiber.name)} if roles.words else set()
    if output is None:
        return None
    data = data_name(output.name)
    cache = cache_name(data, "local")
    names |= {data, cache, copy_block_name(iteration.name, cache)}
    if has_taken(function, iteration, names=names):
        return None
    return RowReduction(
        block=iteration.name,
        row=row,
        position=position,
        feature=features[0] if features else "",
        features=integer_value(roles.features[0].length) if features else None,
        output=data,
        dtype=output.dtype,
        before=_before(roles, iteration.vars),
        width=_width(roles.fiber),
        is_contiguous=not words and _is_contiguous(function, iteration, roles.fiber),
        is_regular=_is_regular(function, iteration, roles, lane=(features or [position])[0]),
        words=tuple(words),
    )


def _is_regular(function: Function, iteration: Iteration, roles: _Roles, *, lane: str) -> bool:
    """Return whether vectors can read and combine the terms. Lanes over the bits of a word cannot: each bit
    is found from the rest of the word."""
    if roles.words:
        return bool(roles.features) and reads_whole_rows(function, iteration, lane=lane)
    return (
        reads_regularly(function, iteration, lane=lane)
        and not selects_by_ragged(function, iteration)
        and (bool(roles.features) or may_reassociate(iteration))
    )


def has_taken(function: Function, iteration: Iteration, *, names: set[str]) -> bool:
    """Return whether a program uses one of these names, or one that primitives would make for its loops, so
    that lowering and primitives would make other names."""
    taken = names_used(function, iteration)
    return not names.isdisjoint(taken) or is_clashing(taken, iteration.vars)


def names_used(function: Function, iteration: Iteration) -> set[str]:
    """Return the names that a function of this iteration uses."""
    declared = (*function.params, *function.axes, *function.buffers)
    return {found.name for found in declared} | {iteration.name, *iteration.vars}


def is_clashing(taken: Iterable[str], loops: Sequence[str]) -> bool:
    """Return whether primitives would make one of the names when they transform these loops."""
    return any(is_made_from(name, loop) for name in taken for loop in loops)


def _output(
    function: Function, iteration: Iteration, *, element: tuple[str, ...]
) -> SparseBuffer | None:
    """Return the output of the reduction, if all its axes are dense."""
    buffer = accumulated_buffer(function, iteration, element=element)
    roots = {axis.name for axis in function.axes if is_dense_root(axis)}
    return buffer if buffer is not None and roots.issuperset(buffer.axes) else None


def reduced_buffer(
    function: Function, iteration: Iteration, *, element: tuple[str, ...]
) -> SparseBuffer | None:
    """Return the buffer of the one reduction or difference in the body, if it initializes and combines this
    element."""
    return accumulated_buffer(function, iteration, element=element) if iteration.init else None


def accumulated_buffer(
    function: Function, iteration: Iteration, *, element: tuple[str, ...]
) -> SparseBuffer | None:
    """Like `reduced_buffer`, also if the body continues from the old value of the element."""
    if len(iteration.body) != 1 or len(iteration.init) > 1:
        return None
    store = iteration.body[0]
    if not isinstance(store, Store) or not _accumulates(store):
        return None
    if store.indices != tuple(index_var(name) for name in element):
        return None
    if not initializes(iteration, store) or not is_within(function, iteration, store):
        return None
    for buffer in function.buffers:
        if isinstance(buffer, SparseBuffer) and buffer.name == store.buffer:
            return buffer
    return None


def initializes(iteration: Iteration, store: Store) -> bool:
    """Return whether the init, if there is one, stores the same element as the body."""
    return all(
        isinstance(init, Store) and (init.buffer, init.indices) == (store.buffer, store.indices)
        for init in iteration.init
    )


def is_within(function: Function, iteration: Iteration, store: Store) -> bool:
    """Return whether an iteration without init only continues from elements that exist: the indices of its
    output are proved to be in range. With an init, the element is stored in any case."""
    if iteration.init:
        return True
    prover = Prover()
    lengths = {axis.name: axis.length for axis in function.axes}
    for size in sorted(free_vars(*lengths.values())):
        prover.assume_nonnegative(index_var(size))
    for variable, axis in zip(iteration.vars, axes_of(function, iteration), strict=False):
        prover.assume_range(variable, ZERO, axis.length)
    dimensions = {
        buffer.name: buffer.axes for buffer in function.buffers if isinstance(buffer, SparseBuffer)
    }
    stored = zip(store.indices, dimensions.get(store.buffer, ()), strict=False)
    return all(
        prover.proves(condition) for at, name in stored for condition in in_range(at, lengths[name])
    )


def _accumulates(store: Store) -> bool:
    """Return whether a store reduces into an element, or subtracts from it, a value that does not depend on
    its buffer."""
    value = store.value
    if isinstance(value, Binary) and value.op == "sub" and isinstance(value.lhs, Load):
        store = msgspec.structs.replace(store, value=msgspec.structs.replace(value, op="add"))
        if value.lhs.buffer != store.buffer:
            return False
    return match_reduction(store) is not None


def has_rows_and_init(function: Function, iteration: Iteration) -> bool:
    """Return whether the first iterator is the row of the output, and the output is initialized."""
    row = axes_of(function, iteration)[0]
    return is_full(row) and integer_value(row.length) != 1 and bool(iteration.init)


def may_reassociate(iteration: Iteration) -> bool:
    """Return whether lanes may hold partial results: of a sum, but not of differences."""
    return all(isinstance(stmt, Store) and match_reduction(stmt) for stmt in iteration.body)


def _before(roles: _Roles, variables: tuple[str, ...]) -> str:
    row = variables[len(roles.roots)]
    # The number of words is a size of the program, whose product with the row no proof of order knows.
    if roles.words:
        return ""
    if not is_varied(roles.row):
        return slots_before(roles.fiber, row, element=row)
    element = f"{slots_before(roles.row, row, element=variables[0])} + {row}"
    return slots_before(roles.fiber, row, element=element)


def slots_before(fiber: Axis, row: str, *, element: str) -> str:
    """Return the text of the number of slots before a row at the loop stage; "" if it is unknown.

    `row` is the variable of the row, `element` its position among all elements of the row's axis.
    """
    indptr = indptr_of(fiber)
    if indptr is not None:
        load = f"{indptr_name(fiber.name)}[{element}]"
        return load if indptr.dtype == "int64" else f"T.int64({load})"
    fixed = width_of(fiber)
    width = fixed.name if isinstance(fixed, Var) else integer_value(fixed)
    return "" if width is None else f"{width} * {row}"


def _width(fiber: Axis) -> int | None:
    return None if is_varied(fiber) else integer_value(width_of(fiber))


def _is_contiguous(function: Function, iteration: Iteration, fiber: Axis) -> bool:
    """Return whether each term is read at its position in the fiber, not at its coordinate."""
    position = iteration.vars[iteration.kinds.rindex("R")]
    axes = {
        buffer.name: buffer.axes for buffer in function.buffers if isinstance(buffer, SparseBuffer)
    }
    for load in walk(iteration.body[0]):
        if isinstance(load, Load) and position in free_vars(load):
            *outer, last = load.indices
            is_own = indices_of(fiber) is None or axes.get(load.buffer, ())[-1:] == (fiber.name,)
            if (
                not is_own
                or last != index_var(position)
                or any(position in free_vars(at) for at in outer)
            ):
                return False
    return True


def is_assignment(iteration: Iteration) -> bool:
    """Return whether an iteration is one unconditional assignment to the element at its variables."""
    if set(iteration.kinds) != {"S"} or iteration.init or len(iteration.body) != 1:
        return False
    store = iteration.body[0]
    if not isinstance(store, Store) or store.predicate is not None:
        return False
    return tuple(getattr(index, "name", "") for index in store.indices) == iteration.vars
