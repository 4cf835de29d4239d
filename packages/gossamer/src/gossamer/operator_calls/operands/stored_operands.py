"""Operands of products with a tensor that a kernel reads in its own format, instead of in CSR."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from gossamer.operator_calls.kernels import KernelRequest, default_check
from gossamer.operator_calls.operands.long_rows import LONG_ROW
from gossamer.operator_calls.program import (
    PART,
    OperatorProgram,
    StoredPart,
    Variant,
    module_of,
)
from gossamer.targets import DEFAULT_TARGET
from gossamer_formats import Array, SparseTensor, check_storage
from gossamer_formats.conversion.recognized_formats import is_format
from gossamer_formats.registry.formats import format_named
from gossamer_formats.storage import Storage, shape_of
from gossamer_ir.core.axis_kinds import is_full
from gossamer_ir.nodes import FormatDescription, Var

SHAPE = ("m", "n")
"""The parameters of kernels for the shape of the matrix."""


class StoredOperands(NamedTuple):
    """The checked operands of one call: the storage of a matrix in the format of its `part`, and the rest as
    in `Operands`."""

    storage: Storage
    part: StoredPart
    dense: dict[str, Array]
    output: str
    shape: tuple[int, ...]
    dtype: str
    features: int | None = None

    @property
    def inputs(self) -> tuple[Array, ...]:
        """All arrays that the result must not overlap."""
        return (*self.dense.values(), *self.storage.arrays.values())

    @property
    def products(self) -> int:
        """The number of products that the kernel computes."""
        return self.storage.values.size * (self.features or 1)

    @property
    def is_zero(self) -> bool:
        """True if the result is zero, or empty, as there is nothing to sum."""
        return self.storage.values.size == 0 or self.features == 0

    @property
    def plan_key(self) -> object:
        """The key of plans that fit the matrix."""
        return part_key(self.part)

    @property
    def structure(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The parameters of kernels for the arrays and for the sizes of the matrix."""
        return structure_names(self.part)

    @property
    def verified(self) -> tuple[str, ...]:
        """The parameters for arrays whose contents were checked when the operands were."""
        return self.structure[0]

    def request(self, program: OperatorProgram) -> KernelRequest:
        """Return the request for the kernel of a program."""
        return KernelRequest(program, Variant(self.dtype, features=self.features), part=self.part)

    def arguments(self, program: OperatorProgram, result: Array) -> dict[str, Any]:
        """Return all arrays and sizes of the call by parameter of the kernel."""
        pointers, scalars = self.structure
        arrays, sizes = structure_values(self.storage, self.part)
        structure = {
            **dict(zip(pointers, arrays, strict=True)),
            **dict(zip(scalars, sizes, strict=True)),
        }
        return {**structure, **self.dense, self.output: result}

    def cut_long_rows(self) -> None:
        """None: matrices with rows that are too long are converted to CSR."""
        return


def stored_part(program: OperatorProgram, matrix: Any) -> StoredPart | None:
    """Return the format in which a program computes with a tensor that is not in CSR; None if it computes
    with CSR.

    It computes with a format if the program over this format has a schedule that makes the conversion
    superfluous, which its rule declares (`replaces_conversion`).

    >>> from scipy.sparse import eye_array
    >>> from gossamer.operators.spmv import PROGRAM
    >>> from gossamer_formats import from_scipy
    >>> matrix = from_scipy(eye_array(9))
    >>> stored_part(PROGRAM, matrix.asformat("sell")).sizes, stored_part(PROGRAM, matrix.asformat("coo"))
    ((('height', 8),), None)
    """
    if (
        not isinstance(matrix, SparseTensor)
        or is_format(matrix.description, "csr")
        or matrix.ndim != 2
    ):
        return None
    part = part_of_storage(matrix.storage)
    if not _is_scheduled(program, part) or _may_have_long_rows(matrix):
        return None
    return part


def checked_storage(tensor: SparseTensor) -> Storage:
    """Return the storage of a tensor; that of one that borrows its arrays is checked."""
    if tensor.is_borrowed:
        check_storage(tensor.storage, check=default_check())
    return tensor.storage


def part_of_storage(storage: Storage) -> StoredPart:
    """Return the format of a storage, with the sizes for which kernels over it are compiled."""
    sizes = tuple((name, storage.sizes[name]) for name in _fixed_sizes(storage.description))
    return StoredPart(storage.description, sizes, is_whole=True)


def part_key(part: StoredPart) -> tuple[str, StoredPart]:
    """Return the key of plans for a part."""
    return PART, part


@lru_cache(maxsize=256)
def structure_names(part: StoredPart) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the parameters of kernels for the arrays of a matrix in the format of a part, and for its sizes,
    both in the order of the description."""
    pointers, sizes = _handles_and_sizes(part)
    return tuple(map(_of_part, pointers)), (*SHAPE, *map(_of_part, sizes))


def structure_values(storage: Storage, part: StoredPart) -> tuple[list[Array], list[int]]:
    """Return the arrays and the sizes of a storage in the order of `structure_names`: the order in a storage
    depends on where it is from."""
    pointers, sizes = _handles_and_sizes(part)
    arrays = [storage.arrays[name] for name in pointers]
    return arrays, [*storage.shape, *(storage.sizes[name] for name in sizes)]


@lru_cache(maxsize=256)
def _handles_and_sizes(part: StoredPart) -> tuple[tuple[str, ...], tuple[str, ...]]:
    params = part.description.params
    known = {size.name for size in shape_of(part.description) if isinstance(size, Var)}
    known |= {name for name, _ in part.sizes}
    handles = tuple(param.name for param in params if param.dtype == "handle")
    sizes = (param.name for param in params if param.dtype != "handle")
    return handles, tuple(name for name in sizes if name not in known)


def _of_part(name: str) -> str:
    return f"{name}_{PART}"


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
def _is_scheduled(program: OperatorProgram, part: StoredPart) -> bool:
    """Return whether the schedule of a program over a format makes a conversion to CSR superfluous."""
    from gossamer.pipeline import schedule_report
    from gossamer.resolve_target import resolve_elsewhere
    from gossamer_ir.errors import FormatError
    from gossamer_schedule.rules import replaces_conversion

    adding = msgspec.structs.replace(program, adds=True)
    try:
        module = module_of(adding, Variant(part.description.buffer.dtype), part)
    except FormatError:
        return False
    _, target = resolve_elsewhere(DEFAULT_TARGET)
    return replaces_conversion(schedule_report(module, target, None).rule)


def _may_have_long_rows(tensor: SparseTensor) -> bool:
    """Return whether a row may have more elements than can be added one by one."""
    is_possible = tensor.dtype == "float32" and tensor.storage.values.size > LONG_ROW
    return is_possible and tensor.stats.longest_row > LONG_ROW
