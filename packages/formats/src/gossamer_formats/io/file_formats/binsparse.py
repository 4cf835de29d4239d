"""Binsparse files (`.bsp.h5`): a JSON descriptor and arrays in an HDF5 container.

The formats are those of the specification (https://graphblas.org/binsparse-specification, version 0.1) that
formats here name as their external ones (`BinsparseFormat`). HDF5 is the container of its reference
implementations, and the specification does not define how other containers store the descriptor. `h5py` reads
it, and is imported only here: install `gossamer-formats[binsparse]`.

The sizes of all arrays are known before any of them is read. HDF5 itself is not made for hostile files: its
library may fail on a container that was damaged on purpose.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gossamer_formats.external_formats.binsparse_format import BinsparseFormat
from gossamer_formats.format import Format
from gossamer_formats.io.declared_sizes import DeclaredSizes, Sizes
from gossamer_formats.io.file_format import FileFormat
from gossamer_formats.memory.ownership import adopt_array
from gossamer_formats.registry.formats import formats_with
from gossamer_formats.tensors.convert import convert
from gossamer_formats.tensors.sparse_tensor import SparseTensor
from gossamer_formats.tensors.standard_formats import in_format_with, is_sorted_and_unique
from gossamer_formats.tensors.tensor_of_arrays import tensor_of_arrays
from gossamer_ir.errors import FormatError
from gossamer_support.arrays import Array
from gossamer_support.message_texts import amount

BINSPARSE_VERSION = "0.1"

_MAX_DESCRIPTOR_LENGTH = 1 << 16
_FILTERS = (None, "gzip", "lzf")
_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("u", "") for bits in (8, 16, 32, 64))
_VALUES = (*_INTEGERS, "float32", "float64", "bint8")
_ISO = re.compile(r"iso\[(\w+)\]")


class _Descriptor(NamedTuple):
    format: Format
    arrays: Mapping[str, str]
    shape: tuple[int, int]
    entries: int
    types: Mapping[str, str]


def read_binsparse(file: Path, *, require_fits: Callable[[Sizes], None]) -> SparseTensor:
    """Return the tensor in the format of the file; raises `ValueError` if the file is malformed.

    `require_fits` is called with the sizes of the arrays before one of them is read.
    """
    with _container(file, "r") as container:
        descriptor = _read_descriptor(container)
        names = {**descriptor.arrays, "data": "values"}
        sets = {handle: _data_set(container, name, descriptor) for handle, name in names.items()}
        rows, columns = descriptor.shape
        size = sum(_bytes_read(data_set) for data_set in sets.values())
        require_fits(DeclaredSizes(rows, columns, descriptor.entries, size))
        arrays = {handle: np.asarray(data_set[()]) for handle, data_set in sets.items()}
    data = arrays["data"]
    if _ISO.fullmatch(descriptor.types["values"]):
        if data.size != 1:
            raise ValueError(
                f"values has {amount(data.size, 'element')}; expected 1, for all entries"
            )
        data = np.full(descriptor.entries, data[0])
    if data.size != descriptor.entries:
        raise ValueError(
            f"values has {amount(data.size, 'element')}; expected {descriptor.entries}"
        )
    real = data if data.dtype.name in ("float32", "float64") else data.astype(np.float64)
    indices = {name: _index_array(name, array) for name, array in arrays.items() if name != "data"}
    contents = {**indices, "data": real.astype(real.dtype.newbyteorder("="))}
    return tensor_of_arrays(
        descriptor.format.name,
        descriptor.shape,
        {name: adopt_array(np.ascontiguousarray(array)) for name, array in contents.items()},
    )


def write_binsparse(tensor: SparseTensor, file: Path) -> None:
    """Write a matrix in its own format if the specification has it, others in csr; duplicates are added."""
    converted, format = in_format_with(tensor, BinsparseFormat)
    tensor = _sort(converted, repeats=format.repeats)
    names = {**format.arrays, "data": "values"}
    with _container(file, "w") as container:
        types = {}
        for handle, name in names.items():
            array = tensor.arrays[handle]
            container.create_dataset(name, data=array)
            types[name] = array.dtype.name
        descriptor = {
            "version": BINSPARSE_VERSION,
            "format": format.names[0],
            "shape": list(tensor.shape),
            "number_of_stored_values": tensor.nnz,
            "data_types": types,
        }
        container.attrs["binsparse"] = json.dumps({"binsparse": descriptor})


def _sort(tensor: SparseTensor, *, repeats: bool) -> SparseTensor:
    """Return the tensor with sorted coordinates and without duplicates, as the specification requires."""
    if not repeats and is_sorted_and_unique(tensor):
        return tensor
    return convert(tensor, tensor.format).tensor


def _container(file: Path, mode: str) -> Any:
    try:
        import h5py
    except ImportError as error:
        raise FormatError(
            "format.binsparse.missing",
            f"'{file}' is a binsparse file, and h5py is not installed.",
            hint="Install it: python -m pip install gossamer-formats[binsparse].",
        ) from error
    return h5py.File(file, mode)


def _read_descriptor(container: Any) -> _Descriptor:
    descriptor = _json_descriptor(container)
    format, types = descriptor.get("format"), descriptor.get("data_types")
    formats = _formats()
    if not isinstance(format, str) or format not in formats:
        raise ValueError(f"its format is {_quote(format)}; expected {', '.join(formats)}")
    _require_readable(descriptor)
    shape, entries = _shape_and_entries(descriptor)
    if not isinstance(types, dict) or not all(isinstance(item, str) for item in types.values()):
        raise ValueError("its descriptor has no data_types")
    record, arrays = formats[format]
    return _Descriptor(record, arrays, shape, entries, types)


def _json_descriptor(container: Any) -> dict[str, Any]:
    text = container.attrs.get("binsparse")
    text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    if not isinstance(text, str) or len(text) > _MAX_DESCRIPTOR_LENGTH:
        raise ValueError("it has no attribute 'binsparse' with a JSON text")
    descriptor: Any = json.loads(text)
    # Writers that follow the examples of the specification nest it, others do not.
    descriptor = (
        descriptor.get("binsparse", descriptor) if isinstance(descriptor, dict) else descriptor
    )
    if not isinstance(descriptor, dict):
        raise ValueError("its descriptor is not a JSON object")
    return descriptor


def _require_readable(descriptor: dict[str, Any]) -> None:
    """Refuse what the specification has and is not read, and other versions of it."""
    for key, allowed in (("structure", None), ("fill", False), ("index_base", 0)):
        if descriptor.get(key) not in (allowed, None):
            raise ValueError(
                f"its descriptor has '{key}': {_quote(descriptor[key])}, which is not read"
            )
    if not str(descriptor.get("version", "")).startswith("0."):
        raise ValueError(
            f"its version is {_quote(descriptor.get('version'))}; expected {BINSPARSE_VERSION}"
        )


def _shape_and_entries(descriptor: dict[str, Any]) -> tuple[tuple[int, int], int]:
    shape, entries = descriptor.get("shape"), descriptor.get("number_of_stored_values")
    if not isinstance(shape, list) or len(shape) != 2 or not all(map(_is_size, [*shape, entries])):
        raise ValueError(
            f"its shape is {_quote(shape)} with {_quote(entries)} stored values; expected 2 sizes, and a "
            "number, from 0 to 2**63 - 1"
        )
    assert isinstance(entries, int)
    return (shape[0], shape[1]), entries


def _formats() -> dict[str, tuple[Format, Mapping[str, str]]]:
    """Return the formats by their names in the specification, with the names of their arrays there."""
    return {
        name: (record, names.arrays)
        for record, names in formats_with(BinsparseFormat)
        for name in names.names
    }


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _quote(value: object) -> str:
    return repr(value)[:60]


def _data_set(container: Any, name: str, descriptor: _Descriptor) -> Any:
    """Return a data set of the container itself, of the declared type."""
    import h5py

    # A link may lead to another file of the machine.
    if not isinstance(container.get(name, getlink=True), h5py.HardLink):
        raise ValueError(f"it has no data set '{name}' of its own")
    data_set = container[name]
    if (
        not isinstance(data_set, h5py.Dataset)
        or data_set.ndim != 1
        or data_set.is_virtual
        or data_set.external
    ):
        raise ValueError(f"'{name}' is not a data set of one dimension in this file")
    if data_set.compression not in _FILTERS:
        raise ValueError(
            f"'{name}' is compressed by '{data_set.compression}'; expected gzip or lzf"
        )
    declared = descriptor.types.get(name, "")
    iso = _ISO.fullmatch(declared) if name == "values" else None
    wanted = iso[1] if iso else declared
    if wanted not in (_VALUES if name == "values" else _INTEGERS):
        raise ValueError(f"'{name}' has the type {_quote(declared)}, which is not read")
    if data_set.dtype.newbyteorder("=").name != wanted.replace("bint8", "uint8"):
        raise ValueError(
            f"'{name}' has the dtype {data_set.dtype}; its descriptor says '{declared}'"
        )
    return data_set


def _bytes_read(data_set: Any) -> int:
    """Return the size of an array, and of a chunk of it, which is decompressed as a whole."""
    chunk = math.prod(data_set.chunks) if data_set.chunks else 0
    size: int = (data_set.size + 2 * chunk) * data_set.dtype.itemsize
    return size


def _index_array(name: str, array: Array) -> Array:
    """Return indices as int32 or int64: the other integers of the specification as int64."""
    if array.dtype.newbyteorder("=").name == "int32":
        return array.astype(np.int32)
    largest = int(array.max(initial=0))
    if largest >= 2**63:
        raise ValueError(f"{name} has the index {largest}; expected less than 2**63")
    return array.astype(np.int64)


FILE_FORMAT = FileFormat(
    (".bsp.h5", ".bsp.hdf5"),
    read_binsparse,
    write_binsparse,
    contents="binsparse 0.1 in HDF5: CSR, CSC, COO, DCSR",
    read_as="its own format",
    written_as="csr, csc, coo and dcsr as they are, others as csr; duplicates are added",
)
