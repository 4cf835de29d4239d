"""The loops somebody would write by hand with Numba: rows in parallel, everything inlined.

Numba and its compiler are only loaded when a loop is asked for; ImportError when not installed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

Loop: TypeAlias = Callable[..., None]

# ruff: noqa: ANN001, ANN202 (compiled functions: Numba infers their types)


@cache
def load_numba() -> Any:
    """Numba on OpenMP threads, which it then shares with the others in this process."""
    os.environ.setdefault("NUMBA_THREADING_LAYER", "omp")
    import numba

    return numba


def set_threads(threads: int) -> None:
    """How many threads Numba uses from now on."""
    numba = load_numba()
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))


@cache
def spmm_loop() -> Loop:
    """C = A B over (indptr, indices, data, B, C)."""
    numba = load_numba()

    def spmm(indptr, indices, data, b, c):  # type: ignore[no-untyped-def]  # Numba infers them
        for i in numba.prange(len(indptr) - 1):
            for k in range(b.shape[1]):
                c[i, k] = 0.0
            for p in range(indptr[i], indptr[i + 1]):
                value = data[p]
                j = indices[p]
                for k in range(b.shape[1]):
                    c[i, k] += value * b[j, k]

    return compiled(spmm)


@cache
def spmv_loop() -> Loop:
    """y = A x over (indptr, indices, data, x, y)."""
    numba = load_numba()

    def spmv(indptr, indices, data, x, y):  # type: ignore[no-untyped-def]  # Numba infers them
        for i in numba.prange(len(indptr) - 1):
            total = x.dtype.type(0.0)
            for p in range(indptr[i], indptr[i + 1]):
                total += data[p] * x[indices[p]]
            y[i] = total

    return compiled(spmv)


@cache
def read_loop() -> Loop:
    """Sums an array `times` times over (array, times, sums); each thread reads its own part, with
    one number of `sums` per thread: nothing but reading."""
    numba = load_numba()

    def read(array, times, sums):  # type: ignore[no-untyped-def]  # Numba infers them
        part = len(array) // len(sums)
        for thread in numba.prange(len(sums)):
            total = array.dtype.type(0.0)
            own = array[thread * part : (thread + 1) * part]
            for _ in range(times):
                for i in range(len(own)):
                    total += own[i]
            sums[thread] = total

    return compiled(read)


@cache
def triad_loop() -> Loop:
    """a = b + 3 c, the classic of memory bandwidth."""
    numba = load_numba()

    def triad(a, b, c):  # type: ignore[no-untyped-def]  # Numba infers them
        for i in numba.prange(len(a)):
            a[i] = b[i] + 3.0 * c[i]

    return compiled(triad)


def compiled(function: Loop) -> Loop:
    """In parallel, with sums in any order, as C programmers get with `-ffast-math`."""
    loop: Loop = load_numba().njit(parallel=True, fastmath=True, boundscheck=False)(function)
    return loop
