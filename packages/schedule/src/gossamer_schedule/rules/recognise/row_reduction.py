"""What rules recognise: a reduction over the fibre of a row, for each row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import msgspec

from gossamer_ir.analysis.reductions import match_reduction
from gossamer_ir.core.build import index_var, integer_value
from gossamer_ir.dependence.access_forms import has_two_names
from gossamer_ir.nodes import (
    Axis,
    Binary,
    CompressedFixed,
    CompressedVaried,
    DenseFixed,
    DenseVaried,
    Expr,
    Function,
    Iteration,
    Load,
    Module,
    OverAxis,
    SparseBuffer,
    Store,
    Var,
)  # fmt: skip
from gossamer_ir.traversal.identity_cache import memoize_by_identity
from gossamer_ir.traversal.walk import free_vars, statements, walk
from gossamer_schedule.rules.recognise.regular_reads import (
    is_dense_root,
    reads_regularly,
    selects_by_ragged,
)

Fibre: TypeAlias = CompressedVaried | CompressedFixed | DenseVaried

_ENDING = re.compile(r"(_(\d+|init|c))+")
"""What primitives append to the name of a loop."""


class SparseReduction(msgspec.Struct, frozen=True):
    """`out[i, k...] = reduction over j of ...`, with j the fibre of row i; or `out[i, k...]`, as it was,
    combined with that.

    Rows are those of a dense axis or the stored ones of a compressed axis with one fibre. A fibre is
    varied (CSR, ragged) or of fixed width (ELL). Names are those of the loop stage: loops, the block,
    the output. `features` is the extent of the loop `feature` (None: symbolic); "" where there is no
    such loop. `before` counts the slots before a row ("": nobody can tell); `width` are those of each
    row (None: they vary, or are symbolic). `is_contiguous` says that terms are read one after the other,
    `is_regular` that vectors can read (`reads_regularly`) and combine them.
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

    @property
    def text(self) -> str:
        """The pattern in words."""
        element = f"{self.row}, {self.feature}" if self.feature else self.row
        return (
            f"each element {self.output}[{element}] reduces over {self.position}, the stored columns "
            f"of row {self.row}"
        )


class _Parts(msgspec.Struct, frozen=True):
    """The axes of an iteration by the part they play; the roots have one element each."""

    roots: tuple[Axis, ...]
    row: Axis
    fibre: Fibre
    features: tuple[DenseFixed, ...]


@memoize_by_identity
def sparse_reduction(module: Module) -> SparseReduction | None:
    """The pattern of a coordinate module of one iteration; None where it has another."""
    found = single_iteration(module)
    if found is None:
        return None
    function, iteration = found
    parts = _parts(axes_of(function, iteration))
    if parts is None or not _has_kinds(iteration, parts):
        return None
    return _pattern(function, iteration, parts)


def single_iteration(module: Module) -> tuple[Function, Iteration] | None:
    """The function and the iteration of a coordinate module that holds nothing else. Elements behind
    the last one, which indices reach from the last row, would keep results of rows from being apart.
    """
    if module.stage != "coordinate" or len(module.functions) != 1:
        return None
    function = module.functions[0]
    if len(function.body) != 1 or not isinstance(function.body[0], Iteration):
        return None
    iteration = function.body[0]
    stored = {node.buffer for node in statements((iteration,)) if isinstance(node, Store)}
    if any(has_two_names(buffer) for buffer in function.buffers if buffer.name in stored):
        return None
    return function, iteration


def axes_of(function: Function, iteration: Iteration) -> tuple[Axis, ...]:
    """The axes of an iteration, empty unless it runs over plain ones."""
    by_name = {axis.name: axis for axis in function.axes}
    over = [by_name[item.axis] for item in iteration.axes if isinstance(item, OverAxis)]
    return tuple(over) if len(over) == len(iteration.axes) else ()


def _parts(axes: tuple[Axis, ...]) -> _Parts | None:
    """The row, its fibre and at most one axis of features; before a stored row its root."""
    count = 1 if _is_stored_row(axes) else 0
    roots, found = axes[:count], axes[count:]
    if len(found) not in (2, 3):
        return None
    row, fibre, *features = found
    if not (roots or is_dense_root(row)) or isinstance(fibre, DenseFixed):
        return None
    dense = tuple(axis for axis in features if isinstance(axis, DenseFixed) and not axis.parent)
    is_reduced = fibre.parent == row.name and len(dense) == len(features)
    return _Parts(roots, row, fibre, dense) if is_reduced else None


def _is_stored_row(axes: tuple[Axis, ...]) -> bool:
    """Whether rows are the coordinates, all different, of the one fibre of a compressed axis."""
    if len(axes) < 3 or not isinstance(axes[0], DenseFixed) or axes[0].parent is not None:
        return False
    root, row, fibre = axes[:3]
    if not isinstance(row, CompressedVaried) or row.padded or not (row.sorted and row.unique):
        return False
    has_one_fibre = row.parent == root.name and integer_value(axes[0].length) == 1
    return has_one_fibre and fibre.parent == row.name


def _has_kinds(iteration: Iteration, parts: _Parts) -> bool:
    return iteration.kinds[len(parts.roots) :] == "SR" + "S" * len(parts.features)


def _pattern(function: Function, iteration: Iteration, parts: _Parts) -> SparseReduction | None:
    row, position, *features = iteration.vars[len(parts.roots) :]
    output = _output(function, iteration, element=(row, *features))
    names = {f"{axis.name}_indptr" for axis in (*parts.roots, parts.row, parts.fibre)}
    if output is None:
        return None
    copy = f"{output.name}_data_local"
    names |= {f"{output.name}_data", copy, f"{iteration.name}_{copy}"}
    if has_taken(function, iteration, names=names):
        return None
    return SparseReduction(
        block=iteration.name,
        row=row,
        position=position,
        feature=features[0] if features else "",
        features=integer_value(parts.features[0].length) if features else None,
        output=f"{output.name}_data",
        dtype=output.dtype,
        before=_before(parts, iteration.vars),
        width=_width(parts.fibre),
        is_contiguous=_is_contiguous(function, iteration, parts.fibre),
        is_regular=reads_regularly(function, iteration, lane=features[0] if features else position)
        and not selects_by_ragged(function, iteration)
        and (bool(features) or may_reassociate(iteration)),
    )


def has_taken(function: Function, iteration: Iteration, *, names: set[str]) -> bool:
    """Whether lowering cannot give these names, or primitives not theirs to loops, as the program
    uses one of them already."""
    taken = names_of(function, iteration)
    return not names.isdisjoint(taken) or is_clashing(taken, iteration.vars)


def names_of(function: Function, iteration: Iteration) -> set[str]:
    """The names that a function of this iteration uses."""
    declared = (*function.params, *function.axes, *function.buffers)
    return {found.name for found in declared} | {iteration.name, *iteration.vars}


def is_clashing(taken: Iterable[str], loops: Sequence[str]) -> bool:
    """Whether one of the names is one that primitives give when they change these loops."""
    return any(
        name.startswith(loop) and _ENDING.fullmatch(name, len(loop))
        for name in taken
        for loop in loops
    )


def _output(
    function: Function, iteration: Iteration, *, element: tuple[str, ...]
) -> SparseBuffer | None:
    """What is reduced to, where it is over dense axes only."""
    buffer = accumulated_buffer(function, iteration, element=element)
    roots = {axis.name for axis in function.axes if is_dense_root(axis)}
    return buffer if buffer is not None and roots.issuperset(buffer.axes) else None


def reduced_buffer(
    function: Function, iteration: Iteration, *, element: tuple[str, ...]
) -> SparseBuffer | None:
    """The buffer of the one reduction, or difference, of the body, where it initialises and combines
    this element."""
    return accumulated_buffer(function, iteration, element=element) if iteration.init else None


def accumulated_buffer(
    function: Function, iteration: Iteration, *, element: tuple[str, ...]
) -> SparseBuffer | None:
    """As `reduced_buffer`, also where the body goes on from what the element held before."""
    if len(iteration.body) != 1 or len(iteration.init) > 1:
        return None
    store = iteration.body[0]
    if not isinstance(store, Store) or not _accumulates(store):
        return None
    if store.indices != tuple(index_var(name) for name in element):
        return None
    if not initialises(iteration, store) or not is_within(function, iteration, store):
        return None
    for buffer in function.buffers:
        if isinstance(buffer, SparseBuffer) and buffer.name == store.buffer:
            return buffer
    return None


def initialises(iteration: Iteration, store: Store) -> bool:
    """Whether an init, where there is one, is of the element that is stored."""
    return all(
        isinstance(init, Store) and (init.buffer, init.indices) == (store.buffer, store.indices)
        for init in iteration.init
    )


def is_within(function: Function, iteration: Iteration, store: Store) -> bool:
    """Whether each element exists that an iteration without init goes on from: the dimensions of its output
    are as long as its axes. An init stores to the element in any case."""
    axes = zip(iteration.vars, axes_of(function, iteration), strict=False)
    ends: dict[Expr, Expr] = {index_var(var): axis.length for var, axis in axes}
    lengths = {axis.name: axis.length for axis in function.axes}
    dimensions = {
        found.name: found.axes for found in function.buffers if isinstance(found, SparseBuffer)
    }
    places = zip(store.indices, dimensions.get(store.buffer, ()), strict=False)
    return bool(iteration.init) or all(ends.get(at) == lengths[name] for at, name in places)


def _accumulates(store: Store) -> bool:
    """Whether a store combines an element with what does not depend on its buffer: reduces to it, or
    subtracts from it."""
    value = store.value
    if isinstance(value, Binary) and value.op == "sub" and isinstance(value.lhs, Load):
        store = msgspec.structs.replace(store, value=msgspec.structs.replace(value, op="add"))
        if value.lhs.buffer != store.buffer:
            return False
    return match_reduction(store) is not None


def may_reassociate(iteration: Iteration) -> bool:
    """Whether lanes may have parts of the results: those of a sum, not those of differences."""
    return all(isinstance(stmt, Store) and match_reduction(stmt) for stmt in iteration.body)


def _before(parts: _Parts, variables: tuple[str, ...]) -> str:
    row = variables[len(parts.roots)]
    if not isinstance(parts.row, CompressedVaried):
        return slots_before(parts.fibre, row, element=row)
    element = f"{_loaded(parts.row, variables[0])} + {row}"
    return slots_before(parts.fibre, row, element=element)


def slots_before(fibre: Fibre, row: str, *, element: str) -> str:
    """The slots before a row, in the text of the loop stage: its variable, and its number among all
    elements of the row's axis; "" where nobody can tell."""
    if not isinstance(fibre, CompressedFixed):
        return _loaded(fibre, element)
    width = fibre.width.name if isinstance(fibre.width, Var) else integer_value(fibre.width)
    return "" if width is None else f"{width} * {row}"


def _loaded(axis: CompressedVaried | DenseVaried, position: str) -> str:
    load = f"{axis.name}_indptr[{position}]"
    return load if axis.indptr_dtype == "int64" else f"T.int64({load})"


def _width(fibre: Axis) -> int | None:
    return integer_value(fibre.width) if isinstance(fibre, CompressedFixed) else None


def _is_contiguous(function: Function, iteration: Iteration, fibre: Axis) -> bool:
    """Whether each term is read at the position in the fibre, and not at its coordinate."""
    position = iteration.vars[iteration.kinds.rindex("R")]
    axes = {found.name: found.axes for found in function.buffers if isinstance(found, SparseBuffer)}
    for load in walk(iteration.body[0]):
        if isinstance(load, Load) and position in free_vars(load):
            *outer, last = load.indices
            is_own = isinstance(fibre, DenseVaried) or axes.get(load.buffer, ())[-1:] == (
                fibre.name,
            )
            if (
                not is_own
                or last != index_var(position)
                or any(position in free_vars(at) for at in outer)
            ):
                return False
    return True
