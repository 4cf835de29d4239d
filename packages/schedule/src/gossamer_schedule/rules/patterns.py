"""What rules recognise: a sum over the compressed fibres of a row, for each row."""

from __future__ import annotations

import msgspec

from gossamer_ir.build import integer_value
from gossamer_ir.nodes import (
    Axis,
    CompressedVaried,
    DenseFixed,
    Function,
    Iteration,
    Module,
    OverAxis,
    SparseBuffer,
    Store,
)  # fmt: skip
from gossamer_ir.reducers import match_reduction


class SparseReduction(msgspec.Struct, frozen=True):
    """`out[i, k...] = sum over j of ...`, with j the fibre of row i in a compressed varied axis.

    Names are those of the loop stage: loops, the block, the output and the axis' `indptr`.
    `features` is the extent of the loop `feature` (None: symbolic); "" where there is no such loop.
    """

    block: str
    row: str
    position: str
    feature: str
    features: int | None
    output: str
    dtype: str
    indptr: str
    indptr_dtype: str

    def weight(self, per_row: int) -> str:
        """The work before a row, in nonzeros: `indptr[row] + per_row * row`."""
        load = f"{self.indptr}[{self.row}]"
        wide = load if self.indptr_dtype == "int64" else f"T.int64({load})"
        return f"{wide} + {per_row} * {self.row}"


def sparse_reduction(module: Module) -> SparseReduction | None:
    """The pattern of a coordinate module of one iteration; None where it has another."""
    if module.stage != "coordinate" or len(module.functions) != 1:
        return None
    function = module.functions[0]
    if len(function.body) != 1 or not isinstance(function.body[0], Iteration):
        return None
    iteration = function.body[0]
    axes = _axes_of(function, iteration)
    if axes is None or iteration.kinds not in ("SR", "SRS"):
        return None
    row, fibre, *features = axes
    if not _is_compressed_row(row, fibre) or not all(_is_dense_root(axis) for axis in features):
        return None
    return _pattern(function, iteration, fibre, features)


def _axes_of(function: Function, iteration: Iteration) -> list[Axis] | None:
    by_name = {axis.name: axis for axis in function.axes}
    if not all(isinstance(item, OverAxis) for item in iteration.axes):
        return None
    return [by_name[item.axis] for item in iteration.axes if isinstance(item, OverAxis)]


def _is_compressed_row(row: Axis, fibre: Axis) -> bool:
    if not isinstance(fibre, CompressedVaried) or fibre.padded:
        return False
    return _is_dense_root(row) and fibre.parent == row.name


def _is_dense_root(axis: Axis) -> bool:
    return isinstance(axis, DenseFixed) and axis.parent is None


def _pattern(
    function: Function, iteration: Iteration, fibre: Axis, features: list[Axis]
) -> SparseReduction | None:
    output = _output(function, iteration)
    if output is None or not isinstance(fibre, CompressedVaried):
        return None
    names = {f"{output.name}_data", f"{fibre.name}_indptr"}
    if names & {declared.name for declared in (*function.params, *function.buffers)}:
        return None
    return SparseReduction(
        block=iteration.name,
        row=iteration.vars[0],
        position=iteration.vars[1],
        feature=iteration.vars[2] if features else "",
        features=integer_value(features[0].length) if features else None,
        output=f"{output.name}_data",
        dtype=output.dtype,
        indptr=f"{fibre.name}_indptr",
        indptr_dtype=fibre.indptr_dtype,
    )


def _output(function: Function, iteration: Iteration) -> SparseBuffer | None:
    """The buffer of the one reduction of the body, initialised and over the spatial axes."""
    if len(iteration.body) != 1 or len(iteration.init) != 1:
        return None
    store = iteration.body[0]
    if not isinstance(store, Store) or match_reduction(store) is None:
        return None
    spatial = tuple(
        item.axis
        for item, kind in zip(iteration.axes, iteration.kinds, strict=True)
        if isinstance(item, OverAxis) and kind == "S"
    )
    for buffer in function.buffers:
        if isinstance(buffer, SparseBuffer) and buffer.name == store.buffer:
            return buffer if buffer.axes == spatial else None
    return None
