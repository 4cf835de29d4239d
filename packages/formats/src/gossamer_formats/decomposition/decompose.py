"""`decompose`: a tensor in the parts of a composable format, or in formats that are listed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gossamer_formats.decomposition.decomposition import Decomposition
from gossamer_formats.decomposition.decomposition_from_csr import decomposition_from_csr
from gossamer_formats.decomposition.format_list import ChosenFormat, chosen_parts
from gossamer_formats.registry.composable_formats import COMPOSABLE_FORMATS
from gossamer_formats.tensors.sparse_tensor import SparseTensor
from gossamer_ir.errors import FormatError
from gossamer_support.typed_calls import typed


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

    >>> import numpy as np
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
    if isinstance(formats, str):
        decomposition: Decomposition = COMPOSABLE_FORMATS.lookup(formats).decomposition_of(
            tensor, parameters
        )
        return decomposition
    if parameters:
        raise FormatError(
            "format.parameter",
            f"A list of formats has no parameter '{next(iter(parameters))}'.",
            hint="Write the parameters of a format in its entry, in a dict after the function.",
        )
    return decomposition_from_csr(
        tensor, "list", lambda matrix: list(chosen_parts(matrix, formats))
    )
