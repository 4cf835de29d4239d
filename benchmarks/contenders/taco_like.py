"""C kernels as TACO (Kjolstad and others, "The Tensor Algebra Compiler", 2017) emits them for CSR and
BSR: a parallel loop over rows, scalar inner loops, the rest is left to the C compiler.

They are written by hand in `benchmarks/taco_like`.
"""

from __future__ import annotations

from ctypes import c_int32, c_void_p
from functools import partial
from pathlib import Path

from benchmarks.contenders.contender import Prepared, UnavailableError
from benchmarks.machine.c_libraries import FAST, CompilerError, load_library
from benchmarks.operator_case import Array, OperatorCase


def prepare(case: OperatorCase, threads: int, *flags: str) -> Prepared:
    """Prepare the C kernel of the operator, compiled with further flags."""
    try:
        library = load_library(Path(__file__).with_name("c_loops"), case.dtype.name, *flags)
    except CompilerError as error:
        raise UnavailableError(str(error)) from None
    sizes, arrays = arguments(case)
    function = getattr(library, case.op)
    function.restype = None
    passed = [*map(c_int32, sizes), *map(pointer, (*arrays, *case.operands, case.out))]
    return Prepared(partial(function, *passed), partial(library.set_threads, c_int32(threads)))


def prepare_fast(case: OperatorCase, threads: int) -> Prepared:
    """Prepare the C kernel, compiled with `-ffast-math`."""
    return prepare(case, threads, FAST)


def arguments(case: OperatorCase) -> tuple[tuple[int, ...], tuple[Array, ...]]:
    """Return the sizes that the kernel takes, and the arrays of the matrix that it reads."""
    rows, features = case.csr.shape[0], case.features
    if case.bsr is not None:
        blocks = case.bsr
        height = blocks.blocksize[0]
        return (rows // height, height, features), (blocks.indptr, blocks.indices, blocks.data)
    structure = (case.csr.indptr, case.csr.indices)
    if case.op == "sddmm":
        return (rows, features), structure
    sizes = (rows,) if case.op == "spmv" else (rows, features)
    return sizes, (*structure, case.csr.data)


def pointer(array: Array) -> c_void_p:
    """Return a pointer to an array, which keeps the array alive."""
    return array.ctypes.data_as(c_void_p)
