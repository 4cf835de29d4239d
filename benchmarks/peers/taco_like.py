"""C kernels as TACO (Kjolstad and others, "The Tensor Algebra Compiler", 2017) emits them for CSR and
BSR: a parallel loop over rows, scalar inner loops, the rest is left to the C compiler.

They are written by hand in `benchmarks/taco_like`.
"""

from __future__ import annotations

from ctypes import c_int32, c_void_p
from functools import partial

from benchmarks.compiling import CompilerError, load_library
from benchmarks.harness.rounds import timed_call
from benchmarks.operators.bsr_spmm import BsrSpmm
from benchmarks.operators.problem import Array, Problem
from benchmarks.peers.peer import Prepared, UnavailableError


def prepare(problem: Problem, threads: int, *flags: str) -> Prepared:
    """Prepares the C kernel of the operator, compiled with further flags."""
    if problem.op == "attention":
        raise UnavailableError("TACO has no softmax")
    try:
        library = load_library("taco_like", problem.dtype.name, *flags)
    except CompilerError as error:
        raise UnavailableError(str(error)) from None
    result = problem.empty_result()
    sizes, arrays = arguments(problem)
    function = getattr(library, problem.op)
    function.restype = None
    passed = [*map(c_int32, sizes), *map(pointer, (*arrays, *problem.operands, result))]
    activate = partial(library.set_threads, c_int32(threads))
    return Prepared(timed_call(partial(function, *passed), activate), lambda: result)


def arguments(problem: Problem) -> tuple[tuple[int, ...], tuple[Array, ...]]:
    """Returns the sizes that the kernel takes, and the arrays of the matrix that it reads."""
    rows, features = problem.csr.shape[0], problem.features
    if isinstance(problem, BsrSpmm):
        blocks = problem.bsr
        height = blocks.blocksize[0]
        return (rows // height, height, features), (blocks.indptr, blocks.indices, blocks.data)
    structure = (problem.csr.indptr, problem.csr.indices)
    if problem.op == "sddmm":
        return (rows, features), structure
    sizes = (rows,) if problem.op == "spmv" else (rows, features)
    return sizes, (*structure, problem.csr.data)


def pointer(array: Array) -> c_void_p:
    """Returns a pointer to an array, which keeps the array alive."""
    return array.ctypes.data_as(c_void_p)
