"""Random N:M matrices, and the values of their elements."""

from __future__ import annotations

import numpy as np

from gossamer_cuda_mma_sp.n_m.operand_dtypes import OPERAND_DTYPES

FLOAT8 = {"float8_e4m3": (4, 3), "float8_e5m2": (5, 2)}
"""The bits of the exponent and of the significand."""


def value_of(element, dtype):
    """The number that a stored element is, as Python has it."""
    if dtype == "bfloat16":
        return float(np.array(int(element) << 16, np.uint32).view(np.float32))
    if dtype == "tfloat32":
        # The lowest 13 bits are not read.
        bits = np.float32(element).view(np.uint32) & np.uint32(0xFFFFE000)
        return float(bits.view(np.float32))
    if dtype in FLOAT8:
        return float8(int(element), *FLOAT8[dtype])
    return float(element) if np.dtype(type(element)).kind == "f" else int(element)


def float8(bits, exponent_bits, significand_bits):
    """The value of a finite number of 8 bits."""
    sign = -1.0 if bits >> 7 else 1.0
    exponent = bits >> significand_bits & (1 << exponent_bits) - 1
    significand = bits & (1 << significand_bits) - 1
    bias = (1 << exponent_bits - 1) - 1
    hidden = (1 << significand_bits) if exponent else 0
    return sign * (hidden + significand) * 2.0 ** (max(exponent, 1) - bias - significand_bits)


def elements_by_integer(dtype):
    """Small integers that a dtype has, and the stored elements."""
    operand = OPERAND_DTYPES[dtype]
    stored = np.dtype(operand.stored_as)
    if dtype == "bfloat16":
        whole = np.arange(-8, 8, dtype=np.float32)
        return whole.astype(int), (whole.view(np.uint32) >> 16).astype(np.uint16)
    if dtype in FLOAT8:
        table = {value_of(bits, dtype): bits for bits in range(128)}
        integers = np.array([*range(1, 9)])
        return integers, np.array([table[float(value)] for value in integers], np.uint8)
    least = 0 if stored.kind == "u" else -8
    integers = np.arange(least, 8)
    return integers, integers.astype(stored)


def random_elements(rng, shape, dtype):
    """Random small integers, as stored elements and as int64."""
    integers, elements = elements_by_integer(dtype)
    chosen = rng.integers(0, len(integers), shape)
    return elements[chosen], integers[chosen].astype(np.int64)


def random_n_m(rng, shape, dtype):
    """A random matrix with the pattern of a dtype, as stored elements and as int64. Groups have from none to
    all of the units that the pattern keeps."""
    pattern = OPERAND_DTYPES[dtype].pattern
    elements, integers = random_elements(rng, shape, dtype)
    groups = -(-shape[1] // pattern.group)
    order = rng.random((shape[0], groups, pattern.units)).argsort(axis=2).argsort(axis=2)
    count = rng.integers(0, pattern.slots + 1, (shape[0], groups, 1))
    is_kept = np.repeat(order < count, pattern.unit_columns, axis=2)
    is_kept = is_kept.reshape(shape[0], groups * pattern.group)[:, : shape[1]]
    return np.where(is_kept, elements, 0).astype(elements.dtype), np.where(is_kept, integers, 0)
