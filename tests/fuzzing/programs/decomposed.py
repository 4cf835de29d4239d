"""Random decompositions of random programs: a matrix is stored in parts, whose arrays are converted."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any

import numpy as np
from msgspec.structs import replace

from gossamer_formats import Decomposition, SparseTensor, Storage, decompose
from gossamer_ir.core.axis_kinds import index_handles, indices_of
from gossamer_ir.errors import FormatError, ScheduleError, UnsupportedError
from gossamer_ir.nodes import FormatDescription, Function, SparseBuffer, Var
from gossamer_ir.script import print_format
from gossamer_ir.traversal.buffer_uses import buffers_written
from gossamer_ir.traversal.walk import walk
from gossamer_schedule import decompose_format
from tests.fuzzing.execution.array_placement import draw_places
from tests.fuzzing.oracle.evaluation import Meaning
from tests.fuzzing.programs.program import Program

FORMATS: dict[str, dict[str, int]] = {
    "bitmask": {}, "blocked_sell": {"block_rows": 2, "block_columns": 2, "height": 2},
    "bsr": {"block_rows": 2, "block_columns": 3}, "coo": {}, "csc": {}, "csf": {}, "csr": {},
    "dbsr": {"block_rows": 2, "block_columns": 3}, "dcsr": {}, "dia": {}, "ell": {},
    "ell_rows": {"width": 2}, "padded_csr": {"width": 2}, "ragged": {}, "row_groups": {"height": 2},
    "sell": {}, "sliced_dia": {"height": 2}, "sr_bcrs": {"strip": 2, "width": 3},
    "tiled_csr": {"tile_columns": 3},
}  # fmt: skip
"""The formats of parts, with their parameters."""
NO_PARTS = {
    "ell3d": "It has three dimensions.",
    "n_m": "It stores matrices that were pruned to it.",
    "v_n_m": "It stores matrices that were pruned to it.",
}
"""The formats in which no part of any matrix can be stored, with the reasons."""
MAX_SIZE = 1000
"""The most rows or columns of a matrix: parts with dense axes would need too much memory for more."""


@dataclass(frozen=True, repr=False)
class DecomposedProgram(Program):
    """A program that computes with parts. It has the meaning of the original program."""

    original: Program = field(kw_only=True)
    formats: tuple[str, ...] = field(kw_only=True)

    @cached_property
    def meaning(self) -> Meaning:
        meaning = self.original.meaning
        arrays = meaning.arrays and {
            name: meaning.arrays[name] for name in meaning.arrays.keys() & self.arrays
        }
        return Meaning(arrays, meaning.events)


def draw_decomposed(rng: Random, program: Program) -> DecomposedProgram | None:
    """Stores a matrix that a program reads in parts; None if there is none, or it is refused."""
    (function,) = program.module.functions
    matrices = _matrices(function)
    if not matrices:
        return None
    buffer = rng.choice(matrices)
    try:
        tensor = SparseTensor(_storage(program, function, buffer))
        if max(tensor.shape) > MAX_SIZE:
            return None
        parts = _decomposition(rng, tensor)
        formats = tuple(print_format(part.tensor.description) for part in parts.parts)
        names = tuple(part.name for part in parts.parts)
        # Only `rewrite` knows the rows of parts.
        if is_rewritten := rng.random() < 0.5:
            module = parts.rewrite(program.module, buffer.name, declares_rows=rng.random() < 0.5)
        else:
            module = decompose_format(
                program.module, (buffer.name,), names=names, formats=formats
            ).module
    except (FormatError, ScheduleError, UnsupportedError):
        return None
    arguments: dict[str, Any] = {**program.arrays, **program.sizes, **parts.arguments}
    for part in () if is_rewritten else parts.parts:
        arguments |= {f"{name}_{part.name}": size for name, size in part.fixed_sizes.items()}
    params = [param.name for param in module.functions[0].params]
    arrays = {name: arguments[name] for name in params if isinstance(arguments[name], np.ndarray)}
    return DecomposedProgram(
        module,
        arrays,
        {name: arguments[name] for name in params if name not in arrays},
        program.tolerances,
        draw_places(rng, arrays),
        original=program,
        formats=tuple(part.tensor.format for part in parts.parts),
    )


def _matrices(function: Function) -> list[SparseBuffer]:
    """The buffers of rows and stored columns that are parameters and only read. A conversion would not keep
    the zeros of a dense one, which are elements."""
    written = buffers_written(function.body)
    stored = {axis.name for axis in function.axes if indices_of(axis) is not None}
    roots = {axis.name for axis in function.axes if axis.parent is None}
    return [
        buffer
        for buffer in function.buffers
        if isinstance(buffer, SparseBuffer)
        and buffer.handle is not None
        and buffer.name not in written
        and len(buffer.axes) == 2
        and buffer.axes[0] in roots
        and buffer.axes[1] in stored
        and not buffer.extra_storage
    ]


def _storage(program: Program, function: Function, buffer: SparseBuffer) -> Storage:
    axes = tuple(axis for axis in function.axes if axis.name in buffer.axes)
    handles = {handle for axis in axes for handle in index_handles(axis)} | {buffer.handle}
    sizes = {node.name for axis in axes for node in walk(axis) if isinstance(node, Var)}
    params = tuple(param for param in function.params if param.name in handles | sizes)
    format = FormatDescription("stored", params, axes, replace(buffer, fill=None))
    return Storage(
        format,
        {name: int(program.sizes[name]) for name in sizes},
        {name: program.arrays[name] for name in handles if name is not None},
    )


def _decomposition(rng: Random, tensor: SparseTensor) -> Decomposition:
    if rng.random() < 0.3:
        return decompose(tensor, "hyb", c=rng.choice((1, 2, 3)), k=rng.choice((0, 1, 2)))
    numbers = np.random.default_rng(rng.getrandbits(32))

    def chosen(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return numbers.random(rows.size) < 0.4

    names = rng.sample(sorted(FORMATS), rng.choice((0, 1, 2, 3)))
    last = rng.choice(sorted(FORMATS))
    return decompose(
        tensor, [*((name, chosen, FORMATS[name]) for name in names), (last, None, FORMATS[last])]
    )
