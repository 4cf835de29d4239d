"""`mma.sp` lane by lane: what a warp computes from the registers of its lanes.

The maps of the PTX ISA are written here element by element, and share nothing with the sources.
"""

from __future__ import annotations

import math

import numpy as np
from n_m_matrices import value_of

LEGAL = {0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110}
LEGAL_OF_TWO = {0b0100, 0b1110}
BITS = {"float16": 16, "bfloat16": 16, "tfloat32": 32, "int4": 4, "uint4": 4}
"""Bits of an element; 8 for the other dtypes."""


def element_of(registers, number, dtype):
    """Element `number` of the registers of a lane."""
    bits = BITS.get(dtype, 8)
    register, place = divmod(number, 32 // bits)
    raw = int(registers[register]) >> place * bits & (1 << bits) - 1
    if bits == 4:
        return raw - 16 if dtype == "int4" and raw > 7 else raw
    if dtype == "int8":
        return raw - 256 if raw > 127 else raw
    stored = {"float16": (np.uint16, np.float16), "tfloat32": (np.uint32, np.float32)}
    unsigned, read_as = stored.get(dtype, (np.uint16, np.uint16))
    return value_of(np.array(raw, unsigned).view(read_as)[()], dtype)


def a_place(lane, number, p):
    """The row and the stored column of an element of A."""
    register, place = divmod(number, p)
    return lane // 4 + 8 * (register % 2), register // 2 * 4 * p + lane % 4 * p + place


def b_place(lane, number, p):
    """The row and the column of an element of B."""
    register, place = divmod(number, p)
    return register * 4 * p + lane % 4 * p + place, lane // 4


def d_place(lane, number):
    """The row and the column of an element of the accumulator."""
    return lane // 4 + 8 * (number // 2), lane % 4 * 2 + number % 2


def metadata_place(row, group, *, bits, depth, selector):
    """The lane and the shift of the metadata of a group: PTX has a figure for each shape."""
    quad = row % 8 * 4
    if bits >= 16:
        shift = 16 * (row // 8) + 4 * (group % 4)
        # m16n8k16 of 16 bits and m16n8k8 of 32 bits have four groups in a row.
        return (quad + selector if depth * bits == 256 else quad + 2 * selector + group // 4), shift
    if depth * bits == 256:
        return quad + 2 * selector + row // 8, 4 * group
    return quad + 2 * (group // 8) + row // 8, 4 * (group % 8)


def decoded(registers, dtype, shape, place_of):
    """The matrix that the lanes hold. Each element is held once."""
    p = 32 // BITS.get(dtype, 8)
    matrix = np.full(shape, np.nan, object)
    for lane in range(32):
        for number in range(registers.shape[1] * p):
            place = place_of(lane, number, p)
            assert isinstance(matrix[place], float)
            assert math.isnan(matrix[place])
            matrix[place] = element_of(registers[lane], number, dtype)
    return matrix


def dense_row(stored, nibbles, dtype, depth):
    """A row of A from its stored elements, as `mma.sp` reads it."""
    row = [0] * depth
    for group, nibble in enumerate(nibbles):
        if dtype == "tfloat32":
            assert nibble in LEGAL_OF_TWO, f"illegal metadata {nibble:04b}"
            row[2 * group + (nibble == 0b1110)] = stored[group]
            continue
        assert nibble in LEGAL, f"illegal metadata {nibble:04b}"
        width = 2 if BITS.get(dtype, 8) == 4 else 1
        for slot, unit in enumerate((nibble & 3, nibble >> 2)):
            for part in range(width):
                row[group * 4 * width + unit * width + part] = stored[
                    (group * 2 + slot) * width + part
                ]
    return row


def sparse_mma(a, b, c, e, *, depth, a_dtype, b_dtype, accumulator, selector):
    """D = A * B + C for the registers of 32 lanes: those of A, B and C, lanes by registers, and those of the
    metadata. Sums are exact; those of int32 wrap."""
    bits = BITS.get(a_dtype, 8)
    stored = decoded(a, a_dtype, (16, depth // 2), a_place)
    dense_b = decoded(b, b_dtype, (depth, 8), b_place)
    groups = depth // {4: 8, 8: 4, 16: 4, 32: 2}[bits]
    rows = []
    for row in range(16):
        places = [
            metadata_place(row, group, bits=bits, depth=depth, selector=selector)
            for group in range(groups)
        ]
        nibbles = [int(e[lane]) >> shift & 15 for lane, shift in places]
        rows.append(dense_row(stored[row], nibbles, a_dtype, depth))
    product = np.array(rows, object) @ dense_b
    results = c.view(accumulator).copy()
    for lane in range(32):
        for number in range(4):
            total = results[lane, number].item() + product[d_place(lane, number)]
            if accumulator == "int32":
                total = (total + 2**31) % 2**32 - 2**31
            results[lane, number] = total
    return results.view(np.uint32)
