"""Matrix instructions of the interpreter, compared with the maps of the PTX ISA, element by element."""

import numpy as np
import pytest
from sparse_mma_lanes import a_place, b_place, d_place, decoded, metadata_place

from gossamer_cuda_mma_sp.instructions.matrix_instructions import MATRIX_INSTRUCTIONS, PTX_TYPES
from gossamer_cuda_mma_sp.interpreter.grid import run_grid
from gossamer_cuda_mma_sp.interpreter.memory import DeviceFaultError, GlobalMemory
from gossamer_cuda_mma_sp.interpreter.program import parse_ptx
from gossamer_cuda_mma_sp.interpreter.warps.warp_products import multiply_in_warps
from gossamer_ir.errors import InternalError

NIBBLES = np.array([0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110])


class Warps:
    """The registers of the lanes of warps."""

    def __init__(self, registers):
        self.registers = registers

    def read(self, name, dtype, lanes):
        return self.registers[name][lanes].view(dtype)

    def write(self, name, value, lanes):
        self.registers[name][lanes] = value.view(np.uint32)


def random_registers(rng, dtype, count):
    """Registers of small values, so that sums are exact: of floats, 1 to 8 with sign."""
    shape = (64, count)
    if dtype in ("int8", "uint8", "int4", "uint4"):
        return rng.integers(0, 1 << 32, shape, np.uint32)
    values = rng.integers(-4, 5, (*shape, {"tfloat32": 1}.get(dtype, 2)))
    if dtype == "float16":
        return values.astype(np.float16).view(np.uint32)[..., 0]
    if dtype == "bfloat16":
        halves = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        return halves.view(np.uint32)[..., 0]
    if dtype == "tfloat32":
        return values.astype(np.float32).view(np.uint32)[..., 0]
    # The exponents are those of 0.25 to 4.
    low = {"float8_e4m3": 0x28, "float8_e5m2": 0x34}[dtype]
    magnitudes = rng.integers(low, low + 0x10, (*shape, 4)).astype(np.uint8)
    signs = rng.integers(0, 2, (*shape, 4)).astype(np.uint8) << 7
    return (magnitudes | signs).view(np.uint32)[..., 0]


def suffixes_of(instruction):
    a, b, sums = (
        PTX_TYPES[each] for each in (instruction.a, instruction.b, instruction.accumulator)
    )
    kind = ("sp::ordered_metadata",) if instruction.is_sparse else ()
    shape = f"m16n8k{instruction.depth}"
    limited = ("satfinite",) if instruction.saturates else ()
    return (*kind, "sync", "aligned", shape, "row", "col", *limited, sums, a, b, sums)


def metadata_words(rng, instruction, selector):
    """Legal metadata for the lanes of a selector, and for others what is illegal."""
    nibbles = rng.choice(NIBBLES[[0, 5]] if instruction.bits == 32 else NIBBLES, (2, 16, 64))
    words = np.full(64, 0xFFFFFFFF, np.uint32)
    groups = instruction.depth // {32: 2, 4: 8}.get(instruction.bits, 4)
    for warp in range(2):
        places = {}
        for row in range(16):
            for group in range(groups):
                lane, shift = metadata_place(
                    row, group, bits=instruction.bits, depth=instruction.depth, selector=selector
                )
                places[lane] = places.get(lane, 0) | int(nibbles[warp, row, group]) << shift
        for lane, word in places.items():
            words[32 * warp + lane] = word
    return words, nibbles[:, :, :groups]


def dense_a(stored, nibbles, instruction):
    """The matrix A of the elements that are stored."""
    dense = np.zeros((16, instruction.depth), object)
    unit = 2 if instruction.bits == 4 else 1
    for row in range(16):
        for group, nibble in enumerate(nibbles[row]):
            if instruction.bits == 32:
                dense[row, 2 * group + (nibble == 0b1110)] = stored[row, group]
                continue
            for slot, at in enumerate((nibble & 3, nibble >> 2)):
                for each in range(unit):
                    place = unit * (4 * group + at) + each
                    dense[row, place] = stored[row, unit * (2 * group + slot) + each]
    return dense


CASES = [(each, f) for each in MATRIX_INSTRUCTIONS for f in each.selectors or (0,)]


@pytest.mark.parametrize(
    ("instruction", "selector"),
    CASES,
    ids=[f"{'.'.join(suffixes_of(each))}-{selector}" for each, selector in CASES],
)
def test_the_lanes_of_two_warps_multiply(instruction, selector):
    rng = np.random.default_rng(0)
    a = random_registers(rng, instruction.a, instruction.a_registers)
    b = random_registers(rng, instruction.b, instruction.b_registers)
    is_half = instruction.accumulator == "float16"
    c = rng.integers(-4, 5, (64, 4)).astype(instruction.accumulator)
    limits = np.iinfo(np.int32)
    if instruction.accumulator == "int32":
        c = rng.choice([limits.min + 4, 0, limits.max - 4], (64, 4)).astype(np.int32)
    words = c.view(np.uint32)
    registers = {f"a{n}": a[:, n].copy() for n in range(a.shape[1])}
    registers |= {f"b{n}": b[:, n].copy() for n in range(b.shape[1])}
    registers |= {f"c{n}": words[:, n].copy() for n in range(words.shape[1])}
    registers |= {f"d{n}": np.zeros(64, np.uint32) for n in range(words.shape[1])}
    count = {"a": a.shape[1], "b": b.shape[1], "c": words.shape[1], "d": words.shape[1]}
    operands = [[f"{name}{n}" for n in range(count[name])] for name in "dabc"]
    nibbles = None
    if instruction.is_sparse:
        registers["e"], nibbles = metadata_words(rng, instruction, selector)
        operands += [["e"], [str(selector)]]
    warps = Warps(registers)
    multiply_in_warps(warps, suffixes_of(instruction), operands, np.arange(64))
    result = np.stack([registers[name] for name in operands[0]], axis=1)
    elements = result.view(instruction.accumulator).reshape(64, 4)
    for warp in range(2):
        lanes = slice(32 * warp, 32 * warp + 32)
        left = decoded(a[lanes], instruction.a, (16, instruction.stored_depth), a_place)
        right = decoded(b[lanes], instruction.b, (instruction.depth, 8), b_place)
        if nibbles is not None:
            left = dense_a(left, nibbles[warp], instruction)
        product = left @ right
        for lane in range(32):
            for number in range(4):
                at = d_place(lane, number)
                expected = product[at] + c[32 * warp + lane, number].item()
                if instruction.saturates:
                    expected = min(max(expected, limits.min), limits.max)
                elif instruction.accumulator == "int32":
                    expected = (expected - limits.min) % (1 << 32) + limits.min
                assert elements[32 * warp + lane, number] == expected, (lane, number, is_half)


DIVERGENT = """
.visible .entry f(.param .u64 f_param_0) {
    .reg .b32 %r<20>; .reg .pred %p<2>;
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, COUNT;
    mov.b32 %r2, 0;
    @%p1 bra L;
    bra E;
L: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
    {%r4, %r5, %r6, %r7}, {%r2, %r2, %r2, %r2}, {%r2, %r2}, {%r2, %r2, %r2, %r2};
E: ret;
}
"""


@pytest.mark.parametrize(("threads", "count"), [(32, 16), (48, 48), (64, 40)])
def test_a_product_that_not_all_lanes_execute_is_a_fault(threads, count):
    program = parse_ptx(DIVERGENT.replace("COUNT", str(count)))["f"]
    with pytest.raises(DeviceFaultError, match="not all lanes of a warp"):
        run_grid(program, GlobalMemory(), grid=(1, 1, 1), block=(threads, 1, 1), arguments=[0])


def test_lanes_that_took_different_ways_wait_for_each_other():
    text = (
        DIVERGENT.replace("COUNT", "16")
        .replace("bra E;", "bra M;")
        .replace("E: ret;", "ret;\nM: bra L;")
    )
    run_grid(parse_ptx(text)["f"], GlobalMemory(), grid=(2, 1, 1), block=(64, 1, 1), arguments=[0])


LOAD = """
.visible .entry f(.param .u64 f_param_0) {
    .reg .b32 %r<20>; .reg .pred %p<2>;
    .shared .align 16 .b8 rows[1024];
    mov.u32 %r1, %tid.x;
    shl.b32 %r3, %r1, 4;
    mov.b32 %r2, rows;
    add.s32 %r2, %r2, %r3;
    st.shared.v4.b32 [%r2], {%r1, %r1, %r1, %r1};
    bar.sync 0;
    setp.lt.u32 %p1, %r1, 16;
    @%p1 bra L;
    bra M;
L: ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r2];
    mov.b32 %r5, %r4;
    ret;
M: bra L;
}
"""


def test_lanes_that_took_different_ways_load_together():
    """None goes on before the others are there: its register has no value then."""
    run_grid(parse_ptx(LOAD)["f"], GlobalMemory(), grid=(2, 1, 1), block=(64, 1, 1), arguments=[0])


def test_an_instruction_outside_of_the_table_is_not_interpreted():
    suffixes = ("sync", "aligned", "m8n8k4", "row", "col", "f64", "f64", "f64", "f64")
    with pytest.raises(InternalError, match="does not know"):
        multiply_in_warps(Warps({}), suffixes, [], np.arange(32))
