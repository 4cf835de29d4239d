"""Tensors from and to torch's sparse tensors. torch is imported by `to_torch` only."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from gossamer_formats.checks.array_checks import INDEX_DTYPES, require_value_dtype
from gossamer_formats.conversion.destination.conversion_destination import describe
from gossamer_formats.external_formats.torch_layout import TorchLayout
from gossamer_formats.format import Format
from gossamer_formats.registry.formats import format_named, formats_with
from gossamer_formats.storage import with_value_dtype
from gossamer_formats.tensors.convert import convert
from gossamer_formats.tensors.sparse_tensor import SparseTensor
from gossamer_formats.tensors.standard_formats import in_format_with, is_sorted_and_unique
from gossamer_formats.tensors.tensor_of_arrays import tensor_of_arrays
from gossamer_formats.value_dtypes import VALUE_DTYPES, converted_values, is_encoded
from gossamer_ir.errors import FormatError
from gossamer_support.arrays import Array
from gossamer_support.message_texts import amount, either
from gossamer_support.typed_calls import typed


def from_torch(tensor: Any, *, dtype: str | None = None, copy: bool = True) -> SparseTensor:
    """Return a tensor with the contents of a sparse tensor of torch, in the format of its layout.

    The layouts are torch.sparse_csr, sparse_csc, sparse_bsr (of two dimensions) and sparse_coo (coalesced or
    not, of any number of dimensions); the device is the CPU. Values must have a dtype of a
    `SparseTensor`, unless `dtype` is given, to which they are converted. The order of coordinates and
    duplicates are kept; gradients are not. Raises `FormatError`.

    With `copy=False` the tensor borrows torch's memory, as `from_scipy` borrows that of a SciPy matrix.

    >>> from scipy.sparse import eye_array
    >>> from gossamer_formats import from_scipy, to_torch
    >>> try:
    ...     format = from_torch(to_torch(from_scipy(eye_array(3)))).format
    ... except FormatError:  # torch is not installed
    ...     format = "csr"
    >>> format
    'csr'
    """
    if dtype is not None:
        require_value_dtype(dtype)
    format, layout = _required_sparse(tensor)
    arrays, sizes = _arrays_of(tensor, layout), dict[str, int]()
    if _has_blocks(format):
        # torch has a dimension for the rows and one for the columns of blocks; storages are flat.
        _, *lengths = arrays["data"].shape
        arrays["data"] = arrays["data"].reshape(-1)
        sizes = dict(zip(format.parameters, lengths, strict=True))
    values, described = _values_of(arrays["data"], dtype, copy=copy)
    arrays["data"] = values
    return tensor_of_arrays(
        with_value_dtype(describe(format.name, ndim=len(tensor.shape)), described),
        tuple(tensor.shape),
        {name: _numpy(array, copy=copy) for name, array in arrays.items()},
        sizes=sizes,
        copy=copy,
    )


def _values_of(values: Any, dtype: str | None, *, copy: bool) -> tuple[Any, str]:
    """Return torch's array of values, converted to a dtype unless that is None, and the dtype. NumPy gets
    those of bfloat16 as uint16."""
    name = str(values.dtype).removeprefix("torch.")
    if dtype is None and name not in VALUE_DTYPES:
        raise FormatError(
            "format.dtype",
            f"The torch tensor has values of dtype {name}; expected {either(VALUE_DTYPES)}.",
            hint="Pass dtype='float32'.",
        )
    if dtype is None or dtype == name:
        return _as_stored(values, name), name
    if not copy:
        raise FormatError(
            "format.copy",
            f"The values of the torch tensor must be converted from {name} to {dtype}, so they cannot "
            "be shared.",
            hint="Use copy=True.",
        )
    torch = sys.modules["torch"]
    if dtype == "int8" and values.dtype.is_floating_point:
        # torch leaves the result for values out of range undefined.
        wide = converted_values(values.to(torch.float64).numpy(), "float64", dtype)
        return torch.from_numpy(wide), dtype
    return _as_stored(values.to(getattr(torch, dtype)), dtype), dtype


def _as_stored(values: Any, dtype: str) -> Any:
    """Return an array of torch with the bits of values that NumPy lacks."""
    return values.view(sys.modules["torch"].uint16) if is_encoded(dtype) else values


@typed
def to_torch(tensor: SparseTensor, *, copy: bool = True) -> Any:
    """Return a sparse tensor of torch in the layout of the tensor's format, such as csr, csc, bsr or coo.

    Other formats become csr, or coo unless they have two dimensions. As torch requires it, csr, csc and bsr
    are sorted and duplicates in them are added; blocks that extend beyond the matrix become csr. Offsets and
    indices have one dtype.

    `copy=False` shares all but the indices of coo, which torch has in one array. It is only for a tensor that
    borrows its arrays (`from_torch` or `from_scipy` with `copy=False`): torch cannot make a tensor read-only,
    so it could change arrays that a tensor owns after they were checked.

    Raises `FormatError`: `format.copy`, and `format.torch.missing` if torch is not installed.

    >>> from scipy.sparse import eye_array
    >>> from gossamer_formats import from_scipy
    >>> try:
    ...     shape = tuple(to_torch(from_scipy(eye_array(3))).shape)
    ... except FormatError:  # torch is not installed
    ...     shape = (3, 3)
    >>> shape
    (3, 3)
    """
    torch = _imported_torch()
    if copy and tensor.is_borrowed:
        tensor = SparseTensor(tensor.storage)
    exportable, layout = in_format_with(tensor, TorchLayout)
    if _has_blocks(format_named(exportable.format)) and not _has_whole_blocks(exportable):
        exportable, layout = in_format_with(convert(exportable, "csr").tensor, TorchLayout)
    # torch assumes that compressed layouts are sorted without duplicates.
    if copy and layout.indptr is not None and not is_sorted_and_unique(exportable):
        exportable = convert(exportable, exportable.format, **_block_sizes(exportable)).tensor
    if not copy:
        _require_borrowed(tensor, exportable)

    def export(array: Array) -> Any:
        return _torch_tensor(torch, array, copy=copy)

    try:
        return _make_tensor(torch, exportable, layout, export, copy=copy)
    except RuntimeError as error:
        raise FormatError(
            "format.copy",
            f"torch refuses the arrays of the borrowed tensor: {_first_line(error)}.",
            hint="Use copy=True, which sorts coordinates and adds duplicates.",
        ) from error


def _first_line(error: RuntimeError) -> str:
    return str(error).splitlines()[0].rstrip(".")


def _required_sparse(tensor: Any) -> tuple[Format, TorchLayout]:
    """Return the format and the layout of a torch tensor that can be read."""
    # A tensor of torch exists only if its module was imported, which would take long.
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(tensor, torch.Tensor):
        raise FormatError(
            "format.kind",
            f"The tensor has the type '{type(tensor).__name__}'; expected a sparse tensor of torch.",
        )
    by_layout = {
        f"torch.{layout.name}": (format, layout) for format, layout in formats_with(TorchLayout)
    }
    if str(tensor.layout) not in by_layout:
        raise FormatError(
            "format.torch.layout",
            f"The torch tensor has the layout {tensor.layout}; expected {', '.join(by_layout)}.",
            hint="Convert it with tensor.to_sparse_csr().",
        )
    format, layout = by_layout[str(tensor.layout)]
    if tensor.device.type != "cpu":
        raise FormatError(
            "format.torch.device",
            f"The torch tensor is on the device '{tensor.device.type}'; expected 'cpu'.",
            hint="Copy it with tensor.cpu().",
        )
    is_hybrid = tensor.dense_dim() > 0
    if is_hybrid or (layout.indptr is not None and len(tensor.shape) != 2):
        what = "dense dimensions" if is_hybrid else amount(len(tensor.shape), "dimension")
        wanted = "none" if is_hybrid else "2"
        raise FormatError("format.dimensions", f"The torch tensor has {what}; expected {wanted}.")
    return format, layout


def _arrays_of(tensor: Any, layout: TorchLayout) -> dict[str, Any]:
    """Return torch's arrays of a tensor: compressed, or coordinates, coalesced or not."""
    if layout.indptr is not None and layout.indices is not None:
        offsets, indices = getattr(tensor, layout.indptr)(), getattr(tensor, layout.indices)()
        return {"indptr": offsets, "indices": indices, "data": tensor.values()}
    # The public methods `indices` and `values` refuse a tensor that is not coalesced.
    coordinates = tensor._indices()
    arrays = {f"indices_{number}": row for number, row in enumerate(coordinates)}
    return {**arrays, "data": tensor._values()}


def _has_blocks(format: Format) -> bool:
    return bool(format.parameters)


def _numpy(array: Any, *, copy: bool) -> Array:
    """Return the NumPy array over the memory of a torch tensor."""
    shared: Array = array.detach().numpy()
    if shared.flags.c_contiguous or copy:
        return shared
    raise FormatError(
        "format.copy",
        f"An array of the torch tensor has the strides {shared.strides}, so it cannot be shared.",
        hint="Use copy=True.",
    )


def _imported_torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise FormatError(
            "format.torch.missing",
            "torch is not installed.",
            hint="Install it: python -m pip install gossamer-formats[torch].",
        ) from error
    return torch


def _has_whole_blocks(tensor: SparseTensor) -> bool:
    sizes = _block_sizes(tensor).values()
    return all(length % size == 0 for length, size in zip(tensor.shape, sizes, strict=True))


def _block_sizes(tensor: SparseTensor) -> dict[str, Any]:
    return {name: tensor.sizes[name] for name in format_named(tensor.format).parameters}


def _require_borrowed(tensor: SparseTensor, exportable: SparseTensor) -> None:
    if exportable is tensor and tensor.is_borrowed:
        return
    what = (
        "owns its arrays, and torch cannot make them read-only"
        if exportable is tensor
        else "must be converted"
    )
    raise FormatError(
        "format.copy",
        f"The tensor in the format '{tensor.format}' {what}, so its arrays cannot be shared.",
        hint="Use copy=True.",
    )


def _torch_tensor(torch: Any, array: Array, *, copy: bool) -> Any:
    if copy:
        return torch.from_numpy(array.copy())
    with warnings.catch_warnings():
        # torch warns of a read-only array; the memory is that of the caller, who can write to it.
        warnings.filterwarnings("ignore", message=".*not write?able", category=UserWarning)
        return torch.from_numpy(array)


def _make_tensor(
    torch: Any,
    tensor: SparseTensor,
    layout: TorchLayout,
    exported: Callable[[Array], Any],
    *,
    copy: bool,
) -> Any:
    """Return the torch tensor over exported arrays of a tensor in the format of a layout."""
    arrays, shape = tensor.arrays, tensor.shape
    values = exported(arrays["data"])
    if is_encoded(tensor.value_dtype):
        values = values.view(getattr(torch, tensor.value_dtype))
    make = getattr(torch, f"{layout.name}_tensor")
    if layout.indptr is None:
        coordinates = [arrays[f"indices_{number}"] for number in range(tensor.ndim)]
        indices = torch.from_numpy(np.stack(coordinates).astype(np.int64))
        return make(indices, values, shape, check_invariants=not copy)
    indptr, indices = arrays["indptr"], arrays["indices"]
    if indptr.dtype != indices.dtype:
        if not copy:
            raise FormatError(
                "format.copy",
                f"torch needs one dtype of offsets ({indptr.dtype}) and indices ({indices.dtype}), so they "
                "cannot be shared.",
                hint="Use copy=True.",
            )
        # The wider dtype, since values may not fit in the narrower one.
        indptr, indices = (array.astype(INDEX_DTYPES[-1]) for array in (indptr, indices))
    sizes = _block_sizes(tensor).values()
    if sizes:
        values = values.reshape(-1, *sizes)
    return make(exported(indptr), exported(indices), values, shape, check_invariants=not copy)
