"""A matrix of square blocks in MKL's BSR."""

from __future__ import annotations

from typing import Any

from benchmarks.contenders import mkl_library
from benchmarks.contenders.contender import UnavailableError


class MklBlocks(mkl_library.MklHandle):
    """A SciPy `bsr_array` or `bsr_matrix` of square blocks in MKL's BSR; arguments as those of `MklMatrix`.

    Blocks that are not square are refused with `UnavailableError`.
    """

    def __init__(self, matrix: Any, *, features: int | None, optimize: bool = True) -> None:
        height, width = matrix.blocksize
        if height != width:
            raise UnavailableError(f"the blocks are {height} x {width}, and MKL's are square")
        rows, columns = matrix.shape
        super().__init__(
            mkl_library.mkl_arrays(matrix.indptr, matrix.indices, matrix.data), (rows, columns)
        )
        self._create("create_bsr", mkl_library.ROW_MAJOR, rows // height, columns // width, height)
        if optimize:
            self._optimize(features)
