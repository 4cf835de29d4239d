"""Descriptors of matrices in shared memory, and where the elements of such a matrix are.

`wgmma` reads a matrix in chunks of 16 bytes. With rows along M or N, and columns along K, either the columns
of a row are contiguous ("K-major") or the rows of a column. Contiguous elements form spans of 16, 32, 64
or 128 bytes. Eight spans, one after the other, are an atom; those of the other matrix dimension are its
eight rows. Within an atom, chunks change places: the number of a chunk in its span is combined with bits of
the address by an exclusive or, so that the same chunk of several spans is in different banks. A span of 16
bytes has one chunk ("no swizzling").

The source is the PTX ISA ("Shared memory matrix layout", "Strides" and "Matrix-descriptor format").
"""

from __future__ import annotations

import msgspec
import numpy as np

from gossamer_ir.errors import ArgumentError
from gossamer_support.arrays import Array
from gossamer_support.typed_calls import typed

CHUNK_BYTES = 16
ATOM_SPANS = 8
"""The spans of an atom."""
SPAN_BYTES = (16, 128, 64, 32)
"""The bytes of a span, by the swizzle mode in a descriptor; 16 is no swizzling."""
_FIELD = (1 << 14) - 1
_ADDRESS_BITS = 18
_BASE_OFFSET = 0b111 << 49


class MatrixDescriptor(msgspec.Struct, frozen=True):
    """A descriptor: the address of a matrix in shared memory, the bytes of a span, and two strides in bytes.

    `stride` is that between atoms along the dimension of the spans, `leading` that along a span. A K-major
    matrix in spans of more than 16 bytes has one atom along K, and no `leading`. For a matrix that is not
    K-major and has spans of 16 bytes, the two are exchanged: `stride` is along a span.

    >>> descriptor = MatrixDescriptor(1024, span=128, stride=1024)
    >>> hex(descriptor.encode())
    '0x4000004000010040'
    >>> MatrixDescriptor.decode(descriptor.encode()) == descriptor
    True
    """

    address: int
    span: int
    stride: int
    leading: int = CHUNK_BYTES

    def encode(self) -> int:
        """Return the 64 bits of the descriptor. Raises `ArgumentError` (`n_m.descriptor`) if the address or
        a stride is not a multiple of 16 below 2**18, if there are no spans of this size, or if an atom with
        chunks that change places would not begin at a multiple of its size."""
        fields = {"address": self.address, "leading": self.leading, "stride": self.stride}
        for name, value in fields.items():
            if value % CHUNK_BYTES or not 0 <= value < 1 << _ADDRESS_BITS:
                raise _descriptor_error(f"{name} is {value}", "a multiple of 16 below 2**18")
        if self.span not in SPAN_BYTES:
            spans = " or ".join(map(str, sorted(SPAN_BYTES)))
            raise _descriptor_error(f"span is {self.span}", f"{spans} bytes")
        address, leading, stride = (value // CHUNK_BYTES for value in fields.values())
        return address | leading << 16 | stride << 32 | SPAN_BYTES.index(self.span) << 62

    @staticmethod
    def decode(bits: int) -> MatrixDescriptor:
        """Return the descriptor of 64 bits: the inverse of `encode`. Raises `ArgumentError`
        (`n_m.descriptor`) if it has a base offset: atoms begin at multiples of their size here."""
        if bits & _BASE_OFFSET:
            raise _descriptor_error(f"base offset is {bits >> 49 & 7}", "0")
        address, leading, stride = ((bits >> shift & _FIELD) * CHUNK_BYTES for shift in (0, 16, 32))
        return MatrixDescriptor(address, SPAN_BYTES[bits >> 62], stride, leading)


@typed
def element_addresses(
    descriptor: MatrixDescriptor, shape: tuple[int, int], *, element_bytes: int, is_k_major: bool
) -> Array:
    """Return the address of each element of a matrix of `shape`: rows (along M or N) by columns (along K).

    Raises `ArgumentError` (`n_m.descriptor`) if a K-major matrix has longer rows than the span: only
    descriptors with spans of 16 bytes say where the rest is.

    >>> spans = MatrixDescriptor(0, span=32, stride=256)
    >>> element_addresses(spans, (8, 16), element_bytes=2, is_k_major=True)[[0, 1, 4], 0].tolist()
    [0, 32, 144]
    """
    row, column = np.indices(shape)
    along, across = (column, row) if is_k_major else (row, column)
    in_row, span = along * element_bytes, descriptor.span
    # Only a K-major matrix, and one without swizzling, counts atoms along K by `leading`.
    first, second = descriptor.leading, descriptor.stride
    if span == CHUNK_BYTES and not is_k_major:
        first, second = second, first
    if is_k_major and span > CHUNK_BYTES:
        used = descriptor.address % span + shape[1] * element_bytes
        if used > span:
            raise _descriptor_error(
                f"span has {span} bytes, and a row ends after {used}",
                "longer spans, or such of 16 bytes",
            )
    address = (
        descriptor.address
        + in_row // span * first
        + in_row % span
        + across // ATOM_SPANS * second
        + across % ATOM_SPANS * span
    )
    return np.asarray(address ^ (address >> 7 & (span // CHUNK_BYTES - 1)) << 4)


def _descriptor_error(is_now: str, expected: str) -> ArgumentError:
    return ArgumentError(
        "n_m.descriptor", f"The {is_now} in a matrix descriptor; expected {expected}."
    )
