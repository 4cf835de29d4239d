"""The pattern of a reduction over the fiber of a row, for each row."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.statements.conditional_bodies import split_condition
from gossamer_ir.core.axis_kinds import (
    indices_of,
    indptr_of,
    is_dense_root,
    is_full,
    is_varied,
    width_of,
)
from gossamer_ir.core.build import index_var, integer_value, var_name
from gossamer_ir.core.lowered_names import data_name
from gossamer_ir.nodes import Axis, Function, Iteration, Load
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.walk import walk
from gossamer_schedule.rules.analysis.fiber_elements import FiberElements, elements_of_fiber
from gossamer_schedule.rules.analysis.gathers import Gather, gather_of
from gossamer_schedule.rules.analysis.iterations import (
    axes_of,
    buffers_by_name,
    single_iteration_pattern,
)
from gossamer_schedule.rules.analysis.outputs import (
    accumulated_buffer,
    dense_buffer,
    may_reassociate,
)
from gossamer_schedule.rules.analysis.regular_reads import (
    reads_regularly,
    reads_whole_rows,
    selects_by_dense_varied,
)
from gossamer_schedule.rules.analysis.slots import slots_before
from gossamer_support.identity_cache import memoize_by_identity


class RowReduction(msgspec.Struct, frozen=True):
    """`out[i, k...] = reduction over j of ...` with j in the fiber of row i, or the same combined with the
    old value of `out[i, k...]`.

    Rows are those of a dense axis or the stored ones of a compressed axis with one fiber. A fiber is varied
    (CSR, ragged) or of fixed width (ELL). Names of loops, the block and the output are those of the loop
    stage.
    """

    block: str
    row: str
    position: str
    feature: str | None
    """None if there is no such loop."""
    features: int | None
    """The extent of `feature`; None if it is symbolic."""
    output: str
    dtype: str
    before: str | None
    """The text of the number of slots before a row; None if it is unknown."""
    gather: Gather
    """The rows of the dense operand."""
    width: int | None
    """The number of slots of each row; None if they vary, or are symbolic."""
    is_contiguous: bool
    """True if terms are read from consecutive positions."""
    is_regular: bool
    """True if vectors can read the terms (`reads_regularly`) and combine them."""
    stored: FiberElements
    """The arrays that are read slot after slot."""
    words: tuple[str, ...] = ()
    """The loops over the fibers of a row if it has several: one for each word of columns (a bitmask). Their
    body may have a condition, since the last word extends beyond the row."""
    sizes: tuple[str, str] | None = None
    """The texts of the numbers of all rows and all slots; None if they are unknown before
    the kernel runs."""

    @property
    def reduction(self) -> str:
        """The outermost loop of the reduction."""
        return (*self.words, self.position)[0]

    @property
    def text(self) -> str:
        """The pattern in words."""
        element = f"{self.row}, {self.feature}" if self.feature else self.row
        return (
            f"each element {self.output}[{element}] reduces over {self.position}, the stored columns "
            f"of row {self.row}"
        )

    def with_names(self, names: Mapping[str, str]) -> RowReduction:
        """Return the pattern with other names, or texts, for loops and the block, where they have them."""
        row = names.get(self.row, self.row)
        before = self.before
        if before is not None:
            before = re.sub(rf"\b{re.escape(self.row)}\b", row, before)
        return replace(
            self,
            row=row,
            position=names.get(self.position, self.position),
            block=names.get(self.block, self.block),
            before=before,
        )


class _RowRoles(msgspec.Struct, frozen=True):
    """The axes of an iteration by role. Roots have one element each."""

    roots: tuple[Axis, ...]
    row: Axis
    words: tuple[Axis, ...]
    fiber: Axis
    features: tuple[Axis, ...]


@memoize_by_identity
@single_iteration_pattern
def row_reduction(function: Function, iteration: Iteration) -> RowReduction | None:
    """Return the pattern of a coordinate module of one iteration; None for any other program."""
    roles = _roles(axes_of(function, iteration))
    if roles is None or not _has_kinds(iteration, roles):
        return None
    terms = _without_condition(iteration, roles)
    return None if terms is None else _pattern(function, terms, roles)


def _roles(axes: tuple[Axis, ...]) -> _RowRoles | None:
    """Return the row, its fiber and at most one axis of features, and before a stored row its root."""
    count = 1 if _is_stored_row(axes) else 0
    roots, others = axes[:count], axes[count:]
    words = () if roots else _words(others)
    if len(others) - len(words) not in (2, 3):
        return None
    row, fiber, *features = (others[0], *others[1 + len(words) :])
    if not (roots or is_dense_root(row)) or is_full(fiber):
        return None
    dense = tuple(axis for axis in features if is_dense_root(axis))
    above = (row, *words)[-1]
    is_reduced = fiber.parent == above.name and len(dense) == len(features)
    return _RowRoles(roots, row, words, fiber, dense) if is_reduced else None


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


def _has_kinds(iteration: Iteration, roles: _RowRoles) -> bool:
    reduced = "R" * (len(roles.words) + 1)
    return iteration.kinds[len(roles.roots) :] == f"S{reduced}" + "S" * len(roles.features)


def _without_condition(iteration: Iteration, roles: _RowRoles) -> Iteration | None:
    """Return an iteration over words without the condition of its body; None if that depends on a feature."""
    if not roles.words:
        return iteration
    body, condition = split_condition(iteration.body)
    features = iteration.vars[len(iteration.vars) - len(roles.features) :]
    if condition is not None and not free_vars(condition).isdisjoint(features):
        return None
    return replace(iteration, body=body)


def _pattern(function: Function, iteration: Iteration, roles: _RowRoles) -> RowReduction | None:
    row, *others = iteration.vars[len(roles.roots) :]
    words, (position, *features) = others[: len(roles.words)], others[len(roles.words) :]
    output = accumulated_buffer(function, iteration, element=(row, *features))
    if output is None or dense_buffer(function, output.name) is None:
        return None
    feature = features[0] if features else None
    extent = integer_value(roles.features[0].length) if features else None
    return RowReduction(
        block=iteration.name,
        row=row,
        position=position,
        feature=feature,
        features=extent,
        output=data_name(output.name),
        dtype=output.dtype,
        before=_before(roles, iteration.vars),
        gather=gather_of(function, iteration, output, column=position, feature=feature),
        width=_width(roles.fiber),
        is_contiguous=not words and _is_contiguous(function, iteration, roles.fiber),
        is_regular=_is_regular(function, iteration, roles, lane=(features or [position])[0]),
        stored=elements_of_fiber(function, iteration, roles.fiber, position=position),
        words=tuple(words),
        sizes=_sizes(roles),
    )


def _is_regular(function: Function, iteration: Iteration, roles: _RowRoles, *, lane: str) -> bool:
    """Return whether vectors can read and combine the terms. Lanes over the bits of a word cannot: each bit
    is found from the rest of the word."""
    if roles.words:
        return bool(roles.features) and reads_whole_rows(function, iteration, lane=lane)
    return (
        reads_regularly(function, iteration, lane=lane)
        and not selects_by_dense_varied(function, iteration)
        and (bool(roles.features) or may_reassociate(iteration))
    )


def _before(roles: _RowRoles, vars: tuple[str, ...]) -> str | None:
    row = vars[len(roles.roots)]
    # The slots before a row would be a product of the row and the number of words, a size of the program.
    # No proof of order uses such a product.
    if roles.words:
        return None
    if not is_varied(roles.row):
        return slots_before(roles.fiber, row, element=row)
    element = f"{slots_before(roles.row, row, element=vars[0])} + {row}"
    return slots_before(roles.fiber, row, element=element)


def _sizes(roles: _RowRoles) -> tuple[str, str] | None:
    """Return the texts of the numbers of rows and of slots, if both are parameters."""
    indptr = indptr_of(roles.fiber)
    if is_varied(roles.row) or roles.words or indptr is None or indptr.nnz is None:
        return None
    rows, slots = var_name(roles.row.length), var_name(indptr.nnz)
    return None if rows is None or slots is None else (rows, slots)


def _width(fiber: Axis) -> int | None:
    return None if is_varied(fiber) else integer_value(width_of(fiber))


def _is_contiguous(function: Function, iteration: Iteration, fiber: Axis) -> bool:
    """Return whether each term is read at its position in the fiber, not at its coordinate."""
    position = iteration.vars[iteration.kinds.rindex("R")]
    axes = {name: buffer.axes for name, buffer in buffers_by_name(function).items()}
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
