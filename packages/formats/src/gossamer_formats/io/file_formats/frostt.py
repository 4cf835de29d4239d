"""FROSTT's files of coordinates (`.tns`): a line for each entry, its coordinates from 1 on and its value.

Smith et al., "FROSTT: The formidable repository of open sparse tensors and tools" (2017). The shape is not in
the file.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from gossamer_formats.io.declared_sizes import EntriesRead, Sizes
from gossamer_formats.io.file_format import FileFormat
from gossamer_formats.io.text_streams import (
    LineBlock,
    create_text,
    entry_problem,
    line_blocks,
    open_text,
    write_entries,
)
from gossamer_formats.memory.ownership import adopt_array
from gossamer_formats.tensors.sparse_tensor import SparseTensor
from gossamer_formats.tensors.standard_formats import COORDINATE_FORMAT, in_coordinates
from gossamer_formats.tensors.tensor_of_arrays import tensor_of_arrays
from gossamer_ir.core.integers import MAX_INT64
from gossamer_support.arrays import Array
from gossamer_support.message_texts import amount

MAX_DIMENSIONS = 32
_MAX_COMMENTS_LENGTH = 1 << 20
"""The number of characters that comments and blank lines may have in all."""


def read_frostt(
    file: Path, *, require_fits: Callable[[Sizes], None], shape: Sequence[int] | None
) -> SparseTensor:
    """Return a tensor in the format coo; raises `ValueError`, with the line, if the file is malformed.

    The shape is by default that of the largest coordinates. `require_fits` is called before the memory for
    more entries is allocated.
    """
    columns: list[list[Array]] = []
    count = 0
    ndim = None if shape is None else len(shape)
    with open_text(file) as stream:
        for numbers, lines in _entry_lines(line_blocks(stream)):
            if ndim is None:
                ndim = _dimensions(lines[0], numbers[0])
            count += len(lines)
            require_fits(EntriesRead(ndim, count))
            table = _table(lines, numbers, ndim, shape)
            columns.append([table[name] for name in table.dtype.names or ()])
    if ndim is None:
        raise ValueError("it has no entries, so its shape is not known; pass shape=(...)")
    *coordinates, values = _join_columns(columns, ndim)
    lengths = [int(array.max(initial=0)) for array in coordinates] if shape is None else shape
    # Half of the memory for coordinates.
    index = np.int32 if max(lengths, default=0) < 2**31 else np.int64
    arrays = {
        f"indices_{number}": adopt_array((array - 1).astype(index))
        for number, array in enumerate(coordinates)
    }
    return tensor_of_arrays(COORDINATE_FORMAT, lengths, {**arrays, "data": adopt_array(values)})


def write_frostt(tensor: SparseTensor, file: Path) -> None:
    """Write the elements of a tensor in the order of the format coo."""
    tensor = in_coordinates(tensor)
    coordinates = [tensor.arrays[f"indices_{number}"] for number in range(tensor.ndim)]
    with create_text(file) as stream:
        write_entries(stream, coordinates, tensor.arrays["data"])


def _entry_lines(blocks: Iterable[LineBlock]) -> Iterator[tuple[list[int], list[str]]]:
    """Yield the lines with entries, and their numbers. The text of all other lines has a limit."""
    left = _MAX_COMMENTS_LENGTH
    for block in blocks:
        numbered = enumerate(block.lines, block.first)
        entries = [(number, line) for number, line in numbered if _is_entry(line)]
        # A character for the end of each line.
        left -= sum(len(line) + 1 for line in block.lines)
        left += sum(len(line) + 1 for _, line in entries)
        if left < 0:
            raise ValueError(
                f"its comments and blank lines have more than {_MAX_COMMENTS_LENGTH} characters"
            )
        if entries:
            yield [number for number, _ in entries], [line for _, line in entries]


def _is_entry(line: str) -> bool:
    return bool(line) and not line.isspace() and not line.lstrip().startswith("#")


def _dimensions(line: str, number: int) -> int:
    fields = len(line.split())
    if not 2 <= fields <= MAX_DIMENSIONS + 1:
        raise ValueError(
            f"line {number} has {amount(fields, 'number')}; expected 1 to {MAX_DIMENSIONS} coordinates and "
            "a value"
        )
    return fields - 1


def _table(lines: list[str], numbers: list[int], ndim: int, shape: Sequence[int] | None) -> Array:
    """Return the entries of lines, whose coordinates are within the shape."""
    names = [f"i{number}" for number in range(ndim)]
    dtype = np.dtype([*((name, np.int64) for name in names), ("value", np.float64)])
    with warnings.catch_warnings():
        # NumPy only warns of a coordinate such as 1.5, and would truncate it.
        warnings.filterwarnings("error", category=DeprecationWarning)
        try:
            table: Array = np.loadtxt(lines, dtype=dtype, comments=None, ndmin=1)
        except (ValueError, DeprecationWarning) as error:
            raise ValueError(_problem(lines, numbers, ndim)) from error
    for dimension, name in enumerate(names):
        length = MAX_INT64 if shape is None else shape[dimension]
        bad = (table[name] < 1) | (table[name] > length)
        if bad.any():
            first = int(bad.argmax())
            limit = "1 or more" if shape is None else f"1 to {length}"
            raise ValueError(
                f"line {numbers[first]} has the coordinate {table[name][first]} in dimension {dimension}; "
                f"expected {limit}"
            )
    return table


def _problem(lines: list[str], numbers: list[int], ndim: int) -> str:
    """Return what is wrong with the first line that is not an entry."""
    for line, number in zip(lines, numbers, strict=True):
        problem = entry_problem(line, coordinates=ndim)
        if problem is not None:
            return f"line {number} has {problem}"
    return f"a number in lines {numbers[0]} to {numbers[-1]} cannot be read"


def _join_columns(columns: list[list[Array]], ndim: int) -> list[Array]:
    if not columns:
        return [*(np.zeros(0, np.int64) for _ in range(ndim)), np.zeros(0)]
    joined = []
    for number in range(ndim + 1):
        joined.append(np.concatenate([block[number] for block in columns]))
        for block in columns:
            # Each column is freed as soon as it is copied.
            block[number] = block[number][:0]
    return joined


FILE_FORMAT = FileFormat(
    (".tns", ".tns.gz"),
    read_frostt,
    write_frostt,
    contents="FROSTT, any number of dimensions",
    read_as=COORDINATE_FORMAT,
    written_as="coordinates, without the shape",
    is_of_any_ndim=True,
    takes_shape=True,
)
