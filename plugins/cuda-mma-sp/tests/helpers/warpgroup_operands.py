"""Operands of `wgmma.mma_async.sp` as the PTX ISA places them in registers and in shared memory, written
element by element; this shares nothing with the sources but the compression of a matrix."""

import numpy as np
from n_m_matrices import random_elements, random_n_m
from sparse_mma_lanes import BITS, metadata_place

from benchmarks.gpu.instruction_kernels.warpgroup_kernels import IMAGE_BYTES, warpgroup_kernels_ptx
from gossamer_cuda_mma_sp.driver.interpreter_driver import InterpreterDriver
from gossamer_cuda_mma_sp.n_m.compress import compress
from gossamer_cuda_mma_sp.n_m.metadata_words import nibbles_of_words
from gossamer_cuda_mma_sp.target.gpu import gpu_of
from gossamer_ir.interchange.records import Target

LANES, ROWS = 128, 64
MODES = {16: 0, 128: 1, 64: 2, 32: 3}
GPU = gpu_of(Target.parse("cuda-mma-sp:arch=sm_90a"))


def a_row_and_column(lane, number, p):
    """The row and the stored column of an element of A in the registers of a lane."""
    register, place = divmod(number, p)
    row = 16 * (lane // 32) + lane % 32 // 4 + 8 * (register % 2)
    return row, register // 2 * 4 * p + lane % 4 * p + place


def sum_row_and_column(lane, number):
    """The row and the column of an element of the accumulator."""
    row = 16 * (lane // 32) + lane % 32 // 4 + 8 * (number // 2 % 2)
    return row, 8 * (number // 4) + lane % 4 * 2 + number % 2


def register_image(elements, places, width):
    """Registers, by lanes, of the elements at the places of each lane."""
    rows = [[elements[place] for place in lane_places] for lane_places in places]
    return (
        np.ascontiguousarray(np.array(rows, elements.dtype)).view(np.uint32).reshape(LANES, width).T
    )


def byte_offset(row, column, *, size, span, is_k_major, extent):
    """Where an element of a matrix is, rows by columns along K, and the two strides of its descriptor: atoms
    are stored one after the other, first along the dimension that is not contiguous."""
    along, across = (column, row) if is_k_major else (row, column)
    across_atoms = extent[0 if is_k_major else 1] // 8
    atom = (along * size // span) * across_atoms + across // 8
    # The rows of 128 bytes in which chunks change places contain 1, 2, 4 or 8 spans.
    chunk = along * size % span // 16 ^ across % 8 * span // 128 % (span // 16)
    return atom * 8 * span + across % 8 * span + chunk * 16 + along * size % 16


def strides(*, span, is_k_major, extent):
    """The leading and the stride byte offset of this order of atoms."""
    across_atoms = extent[0 if is_k_major else 1] // 8
    along, across = across_atoms * 8 * span, 8 * span
    return (across, along) if span == 16 and not is_k_major else (along, across)


def place_matrix(image, start, elements, *, span, is_k_major):
    """Store a matrix in shared memory at an address, and return its descriptor."""
    size, shape = elements.dtype.itemsize, elements.shape
    for row, column in np.ndindex(*shape):
        at = start + byte_offset(
            row, column, size=size, span=span, is_k_major=is_k_major, extent=shape
        )
        image[at : at + size] = np.atleast_1d(elements[row, column]).view(np.uint8)
    leading, stride = strides(span=span, is_k_major=is_k_major, extent=shape)
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | MODES[span] << 62


class WarpgroupProblem:
    """Random operands of a use of an instruction, and the product."""

    def __init__(self, use, *, a_span=16, b_span=16, seed=0, sums=None):
        rng, product = np.random.default_rng(seed), use.instruction
        left, left_integers = random_n_m(rng, (ROWS, product.depth), product.a)
        right, right_integers = random_elements(rng, (product.depth, product.columns), product.b)
        if sums is None:
            sums = rng.integers(-9, 9, (ROWS, product.columns))
        self.use, self.initial = use, sums
        self.expected = left_integers @ right_integers + sums
        matrix = compress(left, product.a, metadata_dtype="int8")
        self.image = np.full(IMAGE_BYTES, 0xA5, np.uint8)
        self.a = (
            place_matrix(self.image, 0, matrix.values, span=a_span, is_k_major=use.a_is_by_k)
            if use.a_is_shared
            else 0
        )
        self.b = place_matrix(self.image, 8192, right.T, span=b_span, is_k_major=use.b_is_by_k)
        self.words = np.concatenate(self.registers(matrix, sums.astype(product.accumulator)))

    def registers(self, matrix, sums):
        """Return the registers of A, of the accumulator, and of the metadata."""
        product = self.use.instruction
        p = 32 // BITS.get(product.a, 8)
        parts = []
        if not self.use.a_is_shared:
            places = [[a_row_and_column(lane, e, p) for e in range(4 * p)] for lane in range(LANES)]
            parts.append(register_image(matrix.values, places, 4))
        parts.append(register_image(sums, self.sum_places(), product.sum_registers))
        parts.append(self.metadata(matrix)[None])
        return parts

    def sum_places(self):
        count = self.use.instruction.columns // 2
        return [[sum_row_and_column(lane, e) for e in range(count)] for lane in range(LANES)]

    def metadata(self, matrix):
        """The words of metadata; what is illegal in the lanes that do not supply any."""
        product = self.use.instruction
        nibbles = nibbles_of_words(matrix.metadata)[
            :, : product.depth // product.element.pattern.group
        ]
        words = {}
        for (row, group), nibble in np.ndenumerate(nibbles):
            lane, shift = metadata_place(
                row % 16,
                group,
                bits=BITS.get(product.a, 8),
                depth=product.depth,
                selector=self.use.selector,
            )
            lane += row // 16 * 32
            words[lane] = words.get(lane, 0) | int(nibble) << shift
        return np.array([words.get(lane, 0xFFFFFFFF) for lane in range(LANES)], np.uint32)

    def run(self, ptx=None, *, threads=LANES, b=None):
        """Return the sums after the kernel has run in the interpreter."""
        driver = InterpreterDriver()
        text = warpgroup_kernels_ptx([self.use], GPU) if ptx is None else ptx
        addresses = []
        for data in (self.words, self.image):
            addresses.append(driver.allocate(data.nbytes))
            driver.copy_to_device(addresses[-1], data, stream=0)
        driver.launch(
            driver.get_function(driver.load_module(text), "warpgroup_0"),
            grid=(1, 1, 1),
            block=(threads, 1, 1),
            arguments=[
                *map(np.uint64, addresses),
                np.uint64(self.a),
                np.uint64(self.b if b is None else b),
            ],
            stream=0,
        )
        words = np.empty_like(self.words)
        driver.copy_to_host(words, addresses[0], stream=0)
        product = self.use.instruction
        count = product.sum_registers
        registers = np.ascontiguousarray(words[-1 - count : -1].T)
        elements = registers.view(product.accumulator)
        sums = np.empty((ROWS, product.columns), elements.dtype)
        for lane, places in enumerate(self.sum_places()):
            for number, place in enumerate(places):
                sums[place] = elements[lane, number]
        return sums
