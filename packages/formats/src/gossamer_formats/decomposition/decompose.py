"""`decompose`: a tensor in the parts of a composable format, or in formats that are listed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gossamer_formats.conversion.target.recognized_formats import is_format
from gossamer_formats.decomposition.chosen_formats import ChosenFormat, chosen_parts
from gossamer_formats.decomposition.composable_format import with_defaults
from gossamer_formats.decomposition.composable_formats import COMPOSABLE_FORMATS
from gossamer_formats.decomposition.decomposition import Decomposition
from gossamer_formats.decomposition.part import Part
from gossamer_formats.decomposition.part_checks import require_parts
from gossamer_formats.permutation import compose
from gossamer_formats.storage import Array
from gossamer_formats.tensor import SparseTensor, convert
from gossamer_ir.core.axis_kinds import indices_of
from gossamer_ir.errors import FormatError
from gossamer_ir.support.counted import counted
from gossamer_ir.support.typed_calls import typed


@typed
def decompose(
    tensor: Any, formats: str | Sequence[ChosenFormat], **parameters: int | None
) -> Decomposition:
    """Return a matrix in the parts of a composable format, or of a list of formats. It is a `SparseTensor` or
    a SciPy matrix.

    The composable format `hyb` has the parameters `c`, the number of partitions of the columns (default 1),
    and `k`: the widest bucket has rows of 2**k slots (default: the first that holds an average row). An entry
    of a list is a format, or a tuple of a format, a function, and a dict of the format's parameters. The
    function takes the rows and the columns of all elements, and returns which of them are in the part unless
    they are in an earlier one. Without a function, all that are left are.

    Operators such as `gossamer.spmm` accept the result: parts that are equal but for their elements share one
    kernel. Raises `FormatError`: `format.unknown`, `format.parameter` (an unknown name),
    `format.parameter.missing`, `format.parameter.value`, `format.parts` (a list that is not valid, or does
    not have all elements), `format.dimensions`, `format.duplicate`.

    >>> from scipy.sparse import csr_array
    >>> from gossamer_formats import SparseTensor
    >>> matrix = SparseTensor(csr_array(np.array([[1.0, 2.0, 3.0], [0.0, 4.0, 0.0]])))
    >>> A = decompose(matrix, "hyb", k=2)
    >>> [(part.name, part.tensor.arrays["rows"].tolist()) for part in A.parts]
    [('p0b0', [1]), ('p0b2', [0])]
    >>> decompose(matrix, [("dia", lambda i, j: i == j), "csr"]).parts[1].tensor.arrays["data"]
    array([2., 3.])
    """
    if not isinstance(tensor, SparseTensor):
        tensor = SparseTensor(tensor)
    if tensor.ndim != 2:
        raise FormatError(
            "format.dimensions",
            f"The tensor has {counted(tensor.ndim, 'dimension')}; expected 2.",
        )
    if isinstance(formats, str):
        composable = COMPOSABLE_FORMATS.named(formats)
        values = with_defaults(composable, parameters)
        matrix, positions = _sorted_csr(tensor)
        with COMPOSABLE_FORMATS.errors_of(formats, doing="decompose a matrix by the"):
            # The function may be a generator, whose body runs here.
            found = list(composable.decompose(matrix, **values))
        name, parts = formats, require_parts(found, matrix, format=formats)
    else:
        if parameters:
            raise FormatError(
                "format.parameter",
                f"A list of formats has no parameter '{next(iter(parameters))}'.",
                hint="Write the parameters of a format in its entry, in a dict after the function.",
            )
        matrix, positions = _sorted_csr(tensor)
        name, parts = "list", list(chosen_parts(matrix, formats))
    if positions is not None:
        parts = [_of_source(part, positions) for part in parts]
    return Decomposition(name, tensor.shape, tensor.dtype, parts, value_count=tensor.nnz)


def _sorted_csr(tensor: SparseTensor) -> tuple[SparseTensor, Array | None]:
    """Return the matrix in CSR with sorted and unique columns, and the positions of its values in the tensor;
    None if these are the same."""
    indices = indices_of(tensor.description.axes[-1])
    if (
        is_format(tensor.description, "csr")
        and not tensor.is_borrowed
        and indices is not None
        and indices.sorted
        and indices.unique
    ):
        return tensor, None
    return convert(tensor, "csr", duplicates="error")


def _of_source(part: Part, positions: Array) -> Part:
    """Return a part of a converted tensor as a part of the tensor, where values have other positions."""
    permutation = compose(positions, part.permutation)
    permutation.flags.writeable = False
    return part._replace(permutation=permutation)
