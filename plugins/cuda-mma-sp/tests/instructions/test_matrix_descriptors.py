"""Descriptors, and the addresses of the elements of matrices, against maps written element by element."""

import numpy as np
import pytest
from warpgroup_operands import byte_offset, strides

from gossamer_cuda_mma_sp.instructions.matrix_descriptors import MatrixDescriptor, element_addresses
from gossamer_ir.errors import ArgumentError


@pytest.mark.parametrize("span", [16, 32, 64, 128])
@pytest.mark.parametrize(("size", "is_k_major"), [(1, True), (2, True), (2, False), (4, True)])
def test_elements_are_where_the_instruction_reads_them(span, size, is_k_major):
    shape = (24, span // size) if is_k_major else (72, 16)
    leading, stride = strides(span=span, is_k_major=is_k_major, extent=shape)
    descriptor = MatrixDescriptor(2048, span=span, stride=stride, leading=leading)
    assert MatrixDescriptor.decode(descriptor.encode()) == descriptor
    at = element_addresses(descriptor, shape, element_bytes=size, is_k_major=is_k_major)
    expected = np.empty(shape, np.int64)
    for row, column in np.ndindex(*shape):
        expected[row, column] = 2048 + byte_offset(
            row, column, size=size, span=span, is_k_major=is_k_major, extent=shape
        )
    assert (at == expected).all()
    assert np.unique(at).size == at.size


def test_a_later_part_of_rows_is_addressed_by_its_first_element():
    whole = MatrixDescriptor(1024, span=128, stride=1024)
    part = MatrixDescriptor(1024 + 64, span=128, stride=1024)
    every = element_addresses(whole, (16, 64), element_bytes=2, is_k_major=True)
    second = element_addresses(part, (16, 32), element_bytes=2, is_k_major=True)
    assert (second == every[:, 32:]).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda: MatrixDescriptor(8, span=16, stride=128).encode(),
        lambda: MatrixDescriptor(0, span=16, stride=1 << 18).encode(),
        lambda: MatrixDescriptor(0, span=16, stride=128, leading=-16).encode(),
        lambda: MatrixDescriptor(0, span=256, stride=128).encode(),
        lambda: MatrixDescriptor.decode(1 << 50),
        lambda: element_addresses(
            MatrixDescriptor(0, span=32, stride=256), (8, 32), element_bytes=2, is_k_major=True
        ),
    ],
)
def test_what_a_descriptor_cannot_say_is_refused(call):
    with pytest.raises(ArgumentError) as caught:
        call()
    assert caught.value.code == "n_m.descriptor"
