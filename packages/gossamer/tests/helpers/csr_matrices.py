"""CSR matrices by their special property, with small integers, and arrays that take no memory."""

from __future__ import annotations

import mmap

import numpy as np
from scipy import sparse

DTYPES = ("float32", "float64")
MAP_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)  # unnamed before Python 3.12


def integers(shape, dtype="float32", seed=1):
    """Small integers, whose sums are exact in both dtypes."""
    return np.random.default_rng(seed).integers(-4, 5, size=shape).astype(dtype)


def random_matrix(shape, *, density, seed, dtype):
    random = np.random.default_rng(seed)
    dense = integers(shape, seed=seed, dtype=dtype)
    dense[random.random(shape) >= density] = 0
    return sparse.csr_array(dense)


def matrices(dtype):
    """Matrices by their special property."""
    usual = random_matrix((37, 29), density=0.2, seed=1, dtype=dtype)
    ends = usual.tolil()
    ends[:3] = 0
    ends[-4:] = 0
    dense_row = usual.tolil()
    dense_row[5] = 3
    dense_column = usual.tolil()
    dense_column[:, 7] = 2
    zeros = usual.copy()
    zeros.data[::3] = 0
    order = np.random.default_rng(2).integers(0, 29, size=200).astype(np.int32)
    pointers = np.sort(np.random.default_rng(3).integers(0, 201, size=36))
    pointers = np.concatenate(([0], pointers, [200])).astype(np.int32)
    unsorted = (integers(200, seed=4, dtype=dtype), order, pointers)
    return {
        "usual": usual,
        "empty rows at both ends": ends.tocsr(),
        "one dense row": dense_row.tocsr(),
        "one dense column": dense_column.tocsr(),
        "explicit zeros": zeros,
        "unsorted and duplicate columns": sparse.csr_array(unsorted, shape=(37, 29)),
        "one row": usual[[4]],
        "one column": usual[:, [7]],
        "one element": sparse.csr_array(np.array([[3.0]], dtype=dtype)),
        "long rows": random_matrix((5, 3000), density=0.5, seed=8, dtype=dtype),
        "no nonzeros": sparse.csr_array((37, 29), dtype=dtype),
        "no rows": sparse.csr_array((0, 29), dtype=dtype),
        "no columns": sparse.csr_array((37, 0), dtype=dtype),
        "nothing": sparse.csr_array((0, 0), dtype=dtype),
    }


NAMES = tuple(matrices("float32"))


def untouched(count, dtype):
    """An array on an anonymous mapping, of which only accessed pages take memory."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE
    return np.frombuffer(mmap.mmap(-1, count * np.dtype(dtype).itemsize, flags=flags), dtype=dtype)
