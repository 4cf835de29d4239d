"""C kernels as TACO (Kjolstad and others, "The Tensor Algebra Compiler", 2017) emits them for CSR and
BSR: a parallel loop over rows, scalar inner loops, the rest is left to the C compiler.

They are written by hand in `benchmarks/taco_like`.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_int32, c_void_p
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from benchmarks.contenders.contender import Prepared, UnavailableError
from benchmarks.machine.c_libraries import FAST, CompilerError, load_library
from benchmarks.operator_case import OperatorCase

if TYPE_CHECKING:
    # Interpreters of other contenders have no gossamer.
    from gossamer_support.arrays import Array


def prepare(case: OperatorCase, threads: int, *flags: str) -> Prepared:
    """Prepare the C kernel of the operator, compiled with further flags."""
    try:
        library = load_library(Path(__file__).with_name("c_loops"), case.dtype.name, *flags)
    except CompilerError as error:
        raise UnavailableError(str(error)) from None
    sizes, arrays = ARGUMENTS[case.op](case)
    function = getattr(library, case.op)
    function.restype = None
    passed = [*map(c_int32, sizes), *map(pointer, (*arrays, *case.operands, case.out))]
    return Prepared(partial(function, *passed), partial(library.set_threads, c_int32(threads)))


def prepare_fast(case: OperatorCase, threads: int) -> Prepared:
    """Prepare the C kernel, compiled with `-ffast-math`."""
    return prepare(case, threads, FAST)


SizesAndArrays: TypeAlias = "tuple[tuple[int, ...], tuple[Array, ...]]"
"""The sizes that a kernel takes, and the arrays of the matrix that it reads."""


def product_arguments(case: OperatorCase) -> SizesAndArrays:
    """Return the arguments for rows and features, with the values."""
    matrix = case.csr
    return (matrix.shape[0], case.features), (matrix.indptr, matrix.indices, matrix.data)


def vector_arguments(case: OperatorCase) -> SizesAndArrays:
    """Return the arguments for rows alone."""
    sizes, arrays = product_arguments(case)
    return sizes[:1], arrays


def pattern_arguments(case: OperatorCase) -> SizesAndArrays:
    """Return the arguments without the values."""
    sizes, arrays = product_arguments(case)
    return sizes, arrays[:2]


def block_arguments(case: OperatorCase) -> SizesAndArrays:
    """Return the arguments for rows of blocks, the height of a block, and features."""
    blocks: Any = case.bsr
    height = blocks.blocksize[0]
    sizes = (blocks.shape[0] // height, height, case.features)
    return sizes, (blocks.indptr, blocks.indices, blocks.data)


ARGUMENTS: dict[str, Callable[[OperatorCase], SizesAndArrays]] = {
    "spmm": product_arguments,
    "spmv": vector_arguments,
    "sddmm": pattern_arguments,
    "bsr_spmm": block_arguments,
}


def pointer(array: Array) -> c_void_p:
    """Return a pointer to an array, which keeps the array alive."""
    return array.ctypes.data_as(c_void_p)
