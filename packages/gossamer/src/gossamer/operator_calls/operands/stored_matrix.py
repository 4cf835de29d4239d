"""Matrices that a kernel reads in their own format, instead of in CSR."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from gossamer.compilation.build_kernels import fact_checker
from gossamer.compilation.pipeline import report_for_target
from gossamer.operator_calls.operands.long_rows import MAX_SUM
from gossamer.operator_calls.operator_kernels import KernelSpec
from gossamer.operator_calls.operator_program import (
    PART_SUFFIX,
    OperatorProgram,
    StoredFormat,
    StructureParameters,
    Variant,
    module_of,
)
from gossamer.targets.parse_target import DEFAULT_TARGET
from gossamer.targets.resolve_target import resolve_elsewhere
from gossamer_formats import Array, SparseTensor, Storage, format_named, require_valid_storage
from gossamer_formats.internal_api import (
    FORMATS,
    MAX_FORMATS,
    ProductStorage,
    borrow_in_own_format,
    evaluate,
    is_format,
    shape_of,
)
from gossamer_ir.core.axis_kinds import indptr_of, is_full
from gossamer_ir.core.build import index_var
from gossamer_ir.errors import FormatError
from gossamer_ir.interchange.records import Stats, Target, size_class
from gossamer_ir.nodes import Expr, FormatDescription, Var
from gossamer_ir.transform.decomposition.part_parameter import part_parameter

SHAPE = ("m", "n")
"""The parameters of kernels for the shape of the matrix."""


class StoredMatrix(msgspec.Struct, frozen=True, eq=False):
    """A checked matrix in a format for which kernels are compiled: a tensor, or a part of one. A `CsrMatrix`
    is one in the format in which scripts are written."""

    storage: Storage
    stored_format: StoredFormat

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
        return format_key(self.storage, self.stored_format)

    @property
    def structure_parameters(self) -> StructureParameters:
        return structure_names(self.stored_format)

    @property
    def verified(self) -> tuple[str, ...]:
        return self.structure_parameters.arrays

    def kernel_spec(
        self, program: OperatorProgram, *, dtype: str, features: int | None
    ) -> KernelSpec:
        """Return which kernel of a program computes with the matrix."""
        variant = Variant(dtype, features=features)
        # Other parts of one format share a kernel, whichever rows they have.
        has_stats = self.stored_format.is_whole or _uses_stats(self.stored_format.description.name)
        stats = _stats(self.storage) if has_stats else None
        return KernelSpec(program, variant, stats, self.stored_format)

    def arguments(self, program: OperatorProgram, dense: Mapping[str, Array]) -> dict[str, Any]:
        """Return all arguments of a kernel, with these `dense` ones."""
        params = self.structure_parameters
        arrays, sizes = structure_values(self.storage, self.stored_format)
        # By name, since the order of a kernel's parameters is that of its script.
        names, values = (*params.arrays, *params.sizes), (*arrays, *sizes)
        return {**dict(zip(names, values, strict=True)), **dense}


def stored_matrix(
    program: OperatorProgram, matrix: Any, *, target: str | Target | None = None
) -> StoredMatrix | None:
    """Return a tensor, or a matrix of SciPy in BSR, as a matrix in its own format; None if a program computes
    with CSR instead. Arrays that the caller can write to are checked (`FormatError`).

    It computes with a format if the program over this format has a schedule for the target that makes the
    conversion superfluous, which its rule declares (`replaces_conversion`).

    >>> from scipy.sparse import eye_array
    >>> from gossamer.operators.spmv import PROGRAM
    >>> from gossamer_formats import from_scipy
    >>> matrix = from_scipy(eye_array(9))
    >>> stored_matrix(PROGRAM, matrix.asformat("sell")).stored_format.sizes
    (('height', 8),)
    >>> stored_matrix(PROGRAM, matrix.asformat("coo"))
    """
    storage = _own_storage(matrix)
    if storage is None:
        return None
    stored_format = format_of_storage(storage)
    # CSR can cut long rows; other formats have no blocks of rows.
    if not _is_scheduled(program, stored_format, target or DEFAULT_TARGET) or _may_have_long_rows(
        storage, matrix
    ):
        return None
    if isinstance(matrix, SparseTensor) and matrix.is_borrowed:
        require_valid_storage(storage, check=fact_checker(DEFAULT_TARGET))
    return StoredMatrix(storage, stored_format)


def _own_storage(matrix: Any) -> Storage | None:
    """Return the arrays of a matrix in its own format; None if it is in CSR, or in a format of SciPy for
    which there is no kernel."""
    if isinstance(matrix, SparseTensor):
        is_other = matrix.ndim == 2 and not is_format(matrix.description, "csr")
        return matrix.storage if is_other else None
    return borrow_in_own_format(matrix)


def format_of_storage(storage: Storage) -> StoredFormat:
    """Return the format of a storage, with the sizes for which kernels over it are compiled."""
    sizes, description = storage.sizes, storage.description
    counts = _block_counts(description)
    return StoredFormat(
        description,
        tuple((name, sizes[name]) for name in _fixed_sizes(description)),
        is_whole=True,
        has_whole_blocks=bool(counts)
        and not any(evaluate(size, sizes) % evaluate(block, sizes) for size, block in counts),
    )


@lru_cache(maxsize=MAX_FORMATS)
def _block_counts(description: FormatDescription) -> tuple[tuple[Expr, Expr], ...]:
    from gossamer_ir.transform.whole_blocks import block_counts

    return block_counts(description)


def format_key(
    storage: Storage, stored_format: StoredFormat
) -> tuple[str, StoredFormat, tuple[int, int, int]]:
    """Return the key of plans for a matrix in this format. Rules choose schedules by the class of the
    sizes."""
    rows, columns = storage.shape
    return PART_SUFFIX, stored_format, size_class(rows, columns, storage.values.size)


@lru_cache(maxsize=MAX_FORMATS)
def _uses_stats(name: str) -> bool:
    format = FORMATS.find(name)
    stored = None if format is None else format.adapter(ProductStorage)
    return stored is not None and stored.uses_stats


def _stats(storage: Storage) -> Stats:
    """Return the statistics of a matrix whose values, also those of unused slots, count as elements, the same
    number in each row: the others would need another pass over the matrix."""
    rows, columns = storage.shape
    count = storage.values.size
    return Stats(rows, columns, count, -(-count // rows) if rows else 0, 0)


@lru_cache(maxsize=MAX_FORMATS)
def structure_names(stored_format: StoredFormat) -> StructureParameters:
    """Return the parameters of kernels for the arrays of a matrix in this format, and for its sizes, both in
    the order of the description."""
    pointers, sizes = handles_and_sizes(stored_format)
    suffixed = partial(part_parameter, part=PART_SUFFIX)
    return StructureParameters(tuple(map(suffixed, pointers)), (*SHAPE, *map(suffixed, sizes)))


def structure_values(
    storage: Storage, stored_format: StoredFormat
) -> tuple[list[Array], list[int]]:
    """Return the arrays and the sizes of a storage in the order of `structure_names`: the order in a storage
    depends on where it is from."""
    pointers, sizes = handles_and_sizes(stored_format)
    arrays = [storage.arrays[name] for name in pointers]
    return arrays, [*storage.shape, *(storage.sizes[name] for name in sizes)]


@lru_cache(maxsize=MAX_FORMATS)
def handles_and_sizes(stored_format: StoredFormat) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the arrays of a matrix in this format, and its sizes besides the shape and those that are fixed,
    both in the order of the description."""
    params = stored_format.description.params
    other_sizes = {
        size.name for size in shape_of(stored_format.description) if isinstance(size, Var)
    }
    other_sizes |= {name for name, _ in stored_format.sizes}
    handles = tuple(param.name for param in params if param.dtype == "handle")
    sizes = (param.name for param in params if param.dtype != "handle")
    return handles, tuple(name for name in sizes if name not in other_sizes)


@lru_cache(maxsize=MAX_FORMATS)
def _fixed_sizes(description: FormatDescription) -> tuple[str, ...]:
    """Return the sizes for which kernels are compiled: the options of a conversion that are lengths of dense
    axes, such as the height of slices. Others, such as the width of ELL, follow from the elements."""
    if not is_format(description, description.name):
        return ()
    lengths = {
        axis.length.name
        for axis in description.axes
        if is_full(axis) and isinstance(axis.length, Var)
    }
    return tuple(name for name in format_named(description.name).parameters if name in lengths)


@lru_cache(maxsize=MAX_FORMATS)
def _is_scheduled(
    program: OperatorProgram, stored_format: StoredFormat, target: str | Target
) -> bool:
    """Return whether the schedule of a program over a format makes a conversion to CSR superfluous on a
    target: rules for CPUs know other formats than those for grids of threads."""
    # Blocks of one row and one column are elements: CSR has less to read.
    sizes: dict[Expr, int] = {index_var(name): size for name, size in stored_format.sizes}
    if [sizes.get(block) for _, block in _block_counts(stored_format.description)] == [1, 1]:
        return False

    adding = replace(program, adds=True)
    # Kernels are compiled for the number of features; which one does not matter here.
    variant = Variant(
        stored_format.description.buffer.dtype, features=1 if program.features else None
    )
    try:
        module = module_of(adding, variant, stored_format)
    except FormatError:
        return False
    _, resolved = resolve_elsewhere(target)
    return report_for_target(module, resolved, None).replaces_conversion


def _may_have_long_rows(storage: Storage, matrix: Any) -> bool:
    """Return whether a row may have more elements than can be added one by one."""
    values = storage.values
    if values.dtype != "float32" or values.size <= MAX_SUM:
        return False
    is_tensor = isinstance(matrix, SparseTensor)
    return _longest_segment(storage) > MAX_SUM and (
        not is_tensor or matrix.stats.longest_row > MAX_SUM
    )


def _longest_segment(storage: Storage) -> int:
    """Return the most values below an element of the parent of a varied axis, which are at least those of a
    row; the number of all values if no axis is varied."""
    values = int(storage.values.size)
    for axis in storage.description.axes:
        indptr = indptr_of(axis)
        if indptr is not None:
            offsets = storage.arrays[indptr.handle]
            return int(np.diff(offsets).max(initial=0)) * values // max(1, int(offsets[-1]))
    return values
