"""Matrices that a kernel reads in their own format, instead of in CSR."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

import msgspec

from gossamer.operator_calls.kernels import KernelRequest, default_check
from gossamer.operator_calls.operands.long_rows import LONG_ROW
from gossamer.operator_calls.program import (
    PART,
    OperatorProgram,
    StoredFormat,
    Variant,
    module_of,
)
from gossamer.targets import DEFAULT_TARGET
from gossamer_formats import Array, SparseTensor, check_storage
from gossamer_formats.conversion.recognized_formats import is_format
from gossamer_formats.registry.formats import format_named
from gossamer_formats.storage import Storage, shape_of
from gossamer_ir.core.axis_kinds import is_full
from gossamer_ir.interchange.records import Stats, size_class
from gossamer_ir.nodes import FormatDescription, Var
from gossamer_ir.transform.decomposition.part_parameter import part_parameter

SHAPE = ("m", "n")
"""The parameters of kernels for the shape of the matrix."""


class StoredMatrix(NamedTuple):
    """A checked matrix in a format for which kernels are compiled: a tensor, or a part of one."""

    storage: Storage
    format: StoredFormat

    @property
    def shape(self) -> tuple[int, ...]:
        return self.storage.shape

    @property
    def dtype(self) -> str:
        return self.storage.description.buffer.dtype

    @property
    def value_count(self) -> int:
        return self.storage.values.size

    @property
    def memory(self) -> tuple[Array, ...]:
        return tuple(self.storage.arrays.values())

    @property
    def plan_key(self) -> object:
        return format_key(self.storage, self.format)

    @property
    def structure(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return structure_names(self.format)

    @property
    def verified(self) -> tuple[str, ...]:
        return self.structure[0]

    def request(
        self, program: OperatorProgram, *, dtype: str, features: int | None
    ) -> KernelRequest:
        """Return the request for the kernel of a program."""
        variant = Variant(dtype, features=features)
        # Parts of one format share a kernel, whichever rows they have. Those in tiles have stats, since their
        # panels of rows are divided among threads.
        has_stats = self.format.is_whole or self.format.description.name == "tiled_csr"
        stats = _stats(self.storage) if has_stats else None
        return KernelRequest(program, variant, stats, self.format)

    def arguments(self, program: OperatorProgram, dense: Mapping[str, Array]) -> dict[str, Any]:
        """Return all arguments of a kernel, with these `dense` ones."""
        pointers, scalars = self.structure
        arrays, sizes = structure_values(self.storage, self.format)
        names, values = (*pointers, *scalars), (*arrays, *sizes)
        return {**dict(zip(names, values, strict=True)), **dense}


def stored_format(program: OperatorProgram, matrix: Any) -> StoredFormat | None:
    """Return the format in which a program computes with a tensor that is not in CSR; None if it computes
    with CSR.

    It computes with a format if the program over this format has a schedule that makes the conversion
    superfluous, which its rule declares (`replaces_conversion`).

    >>> from scipy.sparse import eye_array
    >>> from gossamer.operators.spmv import PROGRAM
    >>> from gossamer_formats import from_scipy
    >>> matrix = from_scipy(eye_array(9))
    >>> stored_format(PROGRAM, matrix.asformat("sell")).sizes, stored_format(PROGRAM, matrix.asformat("coo"))
    ((('height', 8),), None)
    """
    if (
        not isinstance(matrix, SparseTensor)
        or is_format(matrix.description, "csr")
        or matrix.ndim != 2
    ):
        return None
    format = format_of_storage(matrix.storage)
    if not _is_scheduled(program, format) or _may_have_long_rows(matrix):
        return None
    return format


def checked_storage(tensor: SparseTensor) -> Storage:
    """Return the storage of a tensor; that of one that borrows its arrays is checked."""
    if tensor.is_borrowed:
        check_storage(tensor.storage, check=default_check())
    return tensor.storage


def format_of_storage(storage: Storage) -> StoredFormat:
    """Return the format of a storage, with the sizes for which kernels over it are compiled."""
    sizes = tuple((name, storage.sizes[name]) for name in _fixed_sizes(storage.description))
    return StoredFormat(storage.description, sizes, is_whole=True)


def format_key(
    storage: Storage, format: StoredFormat
) -> tuple[str, StoredFormat, tuple[int, int, int]]:
    """Return the key of plans for a matrix in this format. Rules choose schedules by the class of the
    sizes."""
    rows, columns = storage.shape
    return PART, format, size_class(rows, columns, storage.values.size)


def _stats(storage: Storage) -> Stats:
    """Return the statistics of a matrix whose values, also those of unused slots, count as elements, the same
    number in each row: the others would need another pass over the matrix."""
    rows, columns = storage.shape
    count = storage.values.size
    return Stats(rows, columns, count, -(-count // rows) if rows else 0, 0)


@lru_cache(maxsize=256)
def structure_names(format: StoredFormat) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the parameters of kernels for the arrays of a matrix in this format, and for its sizes, both in
    the order of the description."""
    pointers, sizes = _handles_and_sizes(format)
    suffixed = partial(part_parameter, part=PART)
    return tuple(map(suffixed, pointers)), (*SHAPE, *map(suffixed, sizes))


def structure_values(storage: Storage, format: StoredFormat) -> tuple[list[Array], list[int]]:
    """Return the arrays and the sizes of a storage in the order of `structure_names`: the order in a storage
    depends on where it is from."""
    pointers, sizes = _handles_and_sizes(format)
    arrays = [storage.arrays[name] for name in pointers]
    return arrays, [*storage.shape, *(storage.sizes[name] for name in sizes)]


@lru_cache(maxsize=256)
def _handles_and_sizes(format: StoredFormat) -> tuple[tuple[str, ...], tuple[str, ...]]:
    params = format.description.params
    known = {size.name for size in shape_of(format.description) if isinstance(size, Var)}
    known |= {name for name, _ in format.sizes}
    handles = tuple(param.name for param in params if param.dtype == "handle")
    sizes = (param.name for param in params if param.dtype != "handle")
    return handles, tuple(name for name in sizes if name not in known)


@lru_cache(maxsize=256)
def _fixed_sizes(format: FormatDescription) -> tuple[str, ...]:
    """Return the sizes for which kernels are compiled: the options of a conversion that are lengths of dense
    axes, such as the height of slices. Others, such as the width of ELL, follow from the elements."""
    if not is_format(format, format.name):
        return ()
    lengths = {
        axis.length.name for axis in format.axes if is_full(axis) and isinstance(axis.length, Var)
    }
    return tuple(name for name in format_named(format.name).parameters if name in lengths)


@lru_cache(maxsize=256)
def _is_scheduled(program: OperatorProgram, format: StoredFormat) -> bool:
    """Return whether the schedule of a program over a format makes a conversion to CSR superfluous."""
    from gossamer.pipeline import schedule_report
    from gossamer.resolve_target import resolve_elsewhere
    from gossamer_ir.errors import FormatError

    adding = msgspec.structs.replace(program, adds=True)
    # Kernels are compiled for the number of features; which one does not matter here.
    variant = Variant(format.description.buffer.dtype, features=1 if program.features else None)
    try:
        module = module_of(adding, variant, format)
    except FormatError:
        return False
    _, target = resolve_elsewhere(DEFAULT_TARGET)
    return schedule_report(module, target, None).replaces_conversion


def _may_have_long_rows(tensor: SparseTensor) -> bool:
    """Return whether a row may have more elements than can be added one by one."""
    is_possible = tensor.dtype == "float32" and tensor.storage.values.size > LONG_ROW
    return is_possible and tensor.stats.longest_row > LONG_ROW
