"""What rules recognise: a reduction over the fibre of a row, for each row."""

from __future__ import annotations

import msgspec

from gossamer_ir.build import integer_value
from gossamer_ir.nodes import (
    Axis,
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
from gossamer_ir.reducers import match_reduction
from gossamer_ir.walk import free_vars, walk


class SparseReduction(msgspec.Struct, frozen=True):
    """`out[i, k...] = reduction over j of ...`, with j the fibre of row i.

    Rows are those of a dense axis or the stored ones of a compressed axis with one fibre. A fibre is
    varied (CSR, ragged) or of fixed width (ELL). Names are those of the loop stage: loops, the block,
    the output. `features` is the extent of the loop `feature` (None: symbolic); "" where there is no
    such loop. `before` counts the slots before a row ("": nobody can tell); `width` are those of each
    row (None: they vary, or are symbolic). `is_contiguous` says that terms are read one after the other.
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

    def weight(self, per_row: int) -> str | None:
        """The work before a row, in slots; each row counts `per_row` of them more."""
        return f"{self.before} + {per_row} * {self.row}" if self.before else None


class _Parts(msgspec.Struct, frozen=True):
    """The axes of an iteration by the part they play; the roots have one element each."""

    roots: tuple[Axis, ...]
    row: Axis
    fibre: CompressedVaried | CompressedFixed | DenseVaried
    features: tuple[DenseFixed, ...]


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
    """The function and the iteration of a coordinate module that holds nothing else."""
    if module.stage != "coordinate" or len(module.functions) != 1:
        return None
    function = module.functions[0]
    if len(function.body) != 1 or not isinstance(function.body[0], Iteration):
        return None
    return function, function.body[0]


def axes_of(function: Function, iteration: Iteration) -> tuple[Axis, ...]:
    """The axes of an iteration, empty unless it runs over plain ones."""
    by_name = {axis.name: axis for axis in function.axes}
    over = [by_name[item.axis] for item in iteration.axes if isinstance(item, OverAxis)]
    return tuple(over) if len(over) == len(iteration.axes) else ()


def is_dense_root(axis: Axis) -> bool:
    """Whether an axis is dense and has no parent."""
    return isinstance(axis, DenseFixed) and axis.parent is None


def _parts(axes: tuple[Axis, ...]) -> _Parts | None:
    """Unit roots, the row, its fibre, and at most one dense axis of features."""
    at = next((at for at, axis in enumerate(axes) if axis.parent and at), len(axes))
    if at + 1 < len(axes) and _is_stored_row(axes[at], axes[:at]):
        at += 1
    if at >= len(axes):
        return None
    *roots, row = axes[:at]
    fibre, features = axes[at], axes[at + 1 :]
    is_row = bool(roots) or is_dense_root(row)
    if not is_row or isinstance(fibre, DenseFixed) or fibre.parent != row.name:
        return None
    dense = tuple(axis for axis in features if isinstance(axis, DenseFixed) and not axis.parent)
    if len(features) > 1 or len(dense) < len(features):
        return None
    return _Parts(tuple(roots), row, fibre, dense)


def _is_stored_row(row: Axis, roots: tuple[Axis, ...]) -> bool:
    """Whether rows are the coordinates, all different, of the one fibre of a compressed axis."""
    if not isinstance(row, CompressedVaried) or not (row.sorted and row.unique) or row.padded:
        return False
    if len(roots) != 1 or row.parent != roots[0].name or not is_dense_root(roots[0]):
        return False
    return isinstance(roots[0], DenseFixed) and integer_value(roots[0].length) == 1


def _has_kinds(iteration: Iteration, parts: _Parts) -> bool:
    return iteration.kinds[len(parts.roots) :] == "SR" + "S" * len(parts.features)


def _pattern(function: Function, iteration: Iteration, parts: _Parts) -> SparseReduction | None:
    *roots, row, position = iteration.vars[: len(parts.roots) + 2]
    features = iteration.vars[len(parts.roots) + 2 :]
    output = _output(function, iteration, element=(row, *features))
    if output is None or is_renamed(function, iteration, axes=parts, output=output.name):
        return None
    return SparseReduction(
        block=iteration.name,
        row=row,
        position=position,
        feature=features[0] if features else "",
        features=integer_value(parts.features[0].length) if features else None,
        output=f"{output.name}_data",
        dtype=output.dtype,
        before=_before(parts, roots, row),
        width=_width(parts.fibre),
        is_contiguous=_is_contiguous(function, iteration, parts.fibre, position=position),
    )
