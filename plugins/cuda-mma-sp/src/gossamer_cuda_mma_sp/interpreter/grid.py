"""Runs a kernel on a grid: all threads are lanes of arrays, and those furthest behind run first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gossamer_cuda_mma_sp.device_code import GridShape
from gossamer_cuda_mma_sp.interpreter.async_copies import AsyncCopies
from gossamer_cuda_mma_sp.interpreter.memory import (
    GLOBAL_BASE,
    LOCAL_BASE,
    NOBODY,
    SHARED_BASE,
    DeviceFaultError,
    GlobalMemory,
    LaneNumbers,
    ThreadNumbers,
    TrackedMemory,
)
from gossamer_cuda_mma_sp.interpreter.operations import (
    BINARY_OPERATIONS,
    PTX_DTYPES,
    UNARY_OPERATIONS,
    LaneValues,
    compared,
    converted,
    fused,
    least_or_greatest,
)
from gossamer_cuda_mma_sp.interpreter.program import Instruction, KernelProgram
from gossamer_cuda_mma_sp.interpreter.warp_loads import (
    ROW_BYTES,
    addressing_lanes,
    bank_conflicts,
    loaded_registers,
)
from gossamer_cuda_mma_sp.interpreter.warp_products import in_whole_warps, multiply_in_warps
from gossamer_ir.errors import InternalError

_REGISTER_DTYPES = {1: np.bool_, 8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
_ADDRESS = re.compile(r"^\[\s*([%$\w]+)\s*(?:\+\s*(-?\d+))?\s*\]$")
_SPECIAL = re.compile(r"^%(tid|ntid|ctaid|nctaid)\.([xyz])$")
_IN_WARPS = frozenset(("mma", "ldmatrix"))
"""The instructions that all lanes of a warp execute together."""
_CONTROL = _IN_WARPS | {"bra", "ret", "exit", "bar", "barrier"}
"""The instructions after which threads go on elsewhere, end or wait."""
_MOST_LANES = 1 << 16
"""The most threads that run at the same time; of a larger grid, groups of blocks run one after another."""


def run_grid(
    program: KernelProgram,
    memory: GlobalMemory,
    *,
    grid: GridShape,
    block: GridShape,
    arguments: Sequence[int | float],
) -> int:
    """Run a kernel with all threads of a grid, and return the bank conflicts of its matrix loads; raise
    `DeviceFaultError` for what a device may not survive."""
    per_block, blocks = int(np.prod(block)), int(np.prod(grid))
    tracked = TrackedMemory("global", memory.bytes, memory.is_allocated, memory.is_written)
    step, conflicts = max(1, _MOST_LANES // per_block), 0
    with np.errstate(all="ignore"):
        for first in range(0, blocks, step):
            numbers = np.arange(first, min(first + step, blocks))
            group = _Group(program, tracked, numbers, grid=grid, block=block, arguments=arguments)
            group.run()
            conflicts += group.bank_conflicts
    return conflicts


class _Group:
    """Blocks of a grid that run at the same time."""

    def __init__(
        self,
        program: KernelProgram,
        memory: TrackedMemory,
        numbers: LaneNumbers,
        *,
        grid: GridShape,
        block: GridShape,
        arguments: Sequence[int | float],
    ) -> None:
        self._program, self._global = program, memory
        self._per_block = self.block_threads = int(np.prod(block))
        count = numbers.size * self._per_block
        self._count = count
        thread = np.tile(np.arange(self._per_block), numbers.size)
        self._block = np.repeat(np.arange(numbers.size), self._per_block)
        number = np.repeat(numbers, self._per_block)
        self._owners = number * (self._per_block + 1) + thread
        self._epochs = np.zeros(count, np.int64)
        self._special = _special_values(thread, number, grid=grid, block=block)
        self._shared = _private_memory("shared", numbers.size * program.shared_bytes)
        self._local = _private_memory("local", count * program.local_bytes)
        self._arguments = dict(zip(program.params, arguments, strict=True))
        self._registers: dict[str, LaneValues] = {}
        self._defined: dict[str, npt.NDArray[np.bool_]] = {}
        self._pc = np.zeros(count, np.int64)
        self._live = np.ones(count, np.bool_)
        self._waits = np.zeros(count, np.bool_)
        self._waits_for_warp = np.zeros(count, np.bool_)
        self._copies = AsyncCopies(count)
        self.bank_conflicts = 0

    def run(self) -> None:
        while True:
            ready = self._live & ~self._waits & ~self._waits_for_warp
            if not ready.any():
                if not self._live.any():
                    return
                if self._waits_for_warp.any():
                    raise DeviceFaultError("not all lanes of a warp execute a matrix instruction")
                self._release()
                continue
            self._run_furthest_behind(ready)

    def _run_furthest_behind(self, ready: npt.NDArray[np.bool_]) -> None:
        """Run the threads that are furthest behind, up to the next instruction after which they may be
        anywhere, or to the place of the next threads, which go on with them."""
        number = int(self._pc[ready].min())
        lanes = np.flatnonzero(ready & (self._pc == number))
        places = self._pc[ready & (self._pc > number)]
        meeting = int(places.min()) if places.size else len(self._program.instructions)
        while number < meeting:
            instruction = self._program.instructions[number]
            self._step(instruction, number, lanes)
            number += 1
            if instruction.name in _CONTROL:
                return

    def _release(self) -> None:
        """Let the threads of blocks whose threads all wait go on. They must wait at one barrier."""
        places = np.where(self._waits, self._pc, NOBODY).reshape(-1, self._per_block)
        is_waiting = (places != NOBODY).any(axis=1)
        if (places.min(axis=1) != places.max(axis=1))[is_waiting].any():
            raise DeviceFaultError("some threads of a block reach a barrier, and others do not")
        self._epochs[self._waits] += 1
        self._waits[:] = False

    def _step(self, instruction: Instruction, number: int, lanes: LaneNumbers) -> None:
        self._pc[lanes] = number + 1
        if instruction.predicate is not None:
            holds = self.read(instruction.predicate, np.dtype(np.bool_), lanes)
            lanes = lanes[holds != instruction.is_negated]
            if not lanes.size:
                return
        match instruction.name:
            case "bra":
                self._pc[lanes] = self._program.labels[instruction.operands[0]]
            case "ret" | "exit":
                self._live[lanes] = False
            case "bar" | "barrier":
                self._waits[lanes] = True
            case "trap":
                raise DeviceFaultError("a thread reached a trap")
            case name if name in _IN_WARPS:
                self._execute_in_warps(instruction, number, lanes)
            case _:
                self._execute(instruction, lanes)

    def _execute_in_warps(self, instruction: Instruction, number: int, lanes: LaneNumbers) -> None:
        """Execute a matrix instruction in the warps of which all lanes are there; other lanes wait."""
        self._pc[lanes] = number
        self._waits_for_warp[lanes] = True
        together = self._waits_for_warp & (self._pc == number)
        ready = np.flatnonzero(in_whole_warps(together, self._per_block))
        if ready.size:
            self._waits_for_warp[ready] = False
            self._pc[ready] = number + 1
            if instruction.name == "ldmatrix":
                self._load_matrices(instruction, ready)
                return
            registers = [_items(each) for each in instruction.operands]
            multiply_in_warps(self, instruction.suffixes, registers, ready)

    def _load_matrices(self, instruction: Instruction, lanes: LaneNumbers) -> None:
        """Load the rows that lanes address, for the lanes that get their elements."""
        registers = _items(instruction.operands[0])
        addressing = addressing_lanes(lanes, len(registers))
        memory, at = self._place(instruction.operands[1], "shared", addressing)
        self.bank_conflicts += bank_conflicts(at)
        rows = memory.load(at, ROW_BYTES, self._threads(addressing))
        is_transposed = "trans" in instruction.suffixes
        for register, word in zip(
            registers,
            loaded_registers(rows, len(registers), is_transposed=is_transposed),
            strict=True,
        ):
            self.write(register, word, lanes)

    def _execute(self, instruction: Instruction, lanes: LaneNumbers) -> None:
        name, suffixes, operands = instruction.name, instruction.suffixes, instruction.operands
        handler = _HANDLERS.get(name)
        if handler is not None:
            handler(self, suffixes, operands, lanes)
            return
        dtype = PTX_DTYPES.get(suffixes[-1]) if suffixes else None
        if dtype is None or not (name in UNARY_OPERATIONS or name in BINARY_OPERATIONS):
            raise InternalError(f"The interpreter does not know '{name}.{'.'.join(suffixes)}'.")
        if name in UNARY_OPERATIONS:
            result = UNARY_OPERATIONS[name](self.read(operands[1], dtype, lanes))
        else:
            right = np.dtype(np.uint32) if name in ("shl", "shr") else dtype
            values = (self.read(operands[1], dtype, lanes), self.read(operands[2], right, lanes))
            result = BINARY_OPERATIONS[name](*values)
        if "ftz" in suffixes:
            raise InternalError("The interpreter does not flush subnormal numbers.")
        self.write(operands[0], result, lanes)

    # --- values -----------------------------------------------------------------------------

    def read(self, text: str, dtype: np.dtype[Any], lanes: LaneNumbers) -> LaneValues:
        """Return an operand in each thread."""
        if text in self._program.registers:
            defined = self._defined.get(text)
            if defined is None or not defined[lanes].all():
                raise DeviceFaultError(f"a thread reads the register {text}, which nothing wrote")
            raw = self._registers[text][lanes]
            if raw.dtype == np.bool_ or dtype == np.bool_:
                return raw.astype(dtype)
            if raw.dtype.itemsize != dtype.itemsize:
                raw = raw.astype(f"u{dtype.itemsize}")
            return raw.view(dtype)
        if special := _SPECIAL.match(text):
            return self._special[special[1], special[2]][lanes].astype(np.uint32).astype(dtype)
        if text in self._program.symbols:
            return np.full(lanes.size, self._program.symbols[text], dtype)
        return np.full(lanes.size, _literal(text, dtype))

    def write(self, register: str, value: LaneValues, lanes: LaneNumbers) -> None:
        if register == "_":
            return
        target = np.dtype(_REGISTER_DTYPES[self._program.registers[register]])
        if register not in self._registers:
            self._registers[register] = np.zeros(self._count, target)
            self._defined[register] = np.zeros(self._count, np.bool_)
        if target == np.bool_:
            raw = value.astype(np.bool_)
        elif value.dtype == np.bool_:
            raw = value.astype(target)
        elif value.dtype.itemsize == target.itemsize:
            raw = value.view(target)
        elif value.dtype.kind == "i":
            raw = value.astype(f"i{target.itemsize}").view(target)
        else:
            raw = value.view(f"u{value.dtype.itemsize}").astype(target)
        self._registers[register][lanes] = raw
        self._defined[register][lanes] = True

    # --- memory -----------------------------------------------------------------------------

    def _place(
        self, text: str, space: str, lanes: LaneNumbers
    ) -> tuple[TrackedMemory, LaneNumbers]:
        """Return the memory and the offsets of an address in it."""
        match = _ADDRESS.match(text)
        if match is None:
            raise InternalError(f"The interpreter does not know the address '{text}'.")
        base = self.read(match[1], np.dtype(np.uint64), lanes).astype(np.int64)
        address = base + int(match[2] or 0)
        if space == "generic":
            space = _space_of(address)
            starts = {"global": 0, "shared": SHARED_BASE, "local": LOCAL_BASE}
            address = address - starts[space]
        if space == "global":
            return self._global, address - GLOBAL_BASE
        size = self._program.shared_bytes if space == "shared" else self._program.local_bytes
        if ((address < 0) | (address >= size)).any():
            raise DeviceFaultError(f"a thread accesses {space} memory out of bounds")
        if space == "shared":
            return self._shared, address + self._block[lanes] * size
        return self._local, address + lanes * size

    def _threads(self, lanes: LaneNumbers) -> ThreadNumbers:
        return ThreadNumbers(self._owners[lanes], self._epochs[lanes], self._per_block + 1)

    def load(
        self, suffixes: tuple[str, ...], operands: tuple[str, ...], lanes: LaneNumbers
    ) -> None:
        dtype = PTX_DTYPES[suffixes[-1]]
        targets = _items(operands[0])
        if suffixes[0] == "param":
            match = _ADDRESS.match(operands[1])
            assert match is not None
            value = np.full(lanes.size, _as_bits(self._arguments[match[1]], dtype))
            self.write(targets[0], value, lanes)
            return
        memory, at = self._place(operands[1], _space(suffixes), lanes)
        size = dtype.itemsize
        if (at % (size * len(targets))).any():
            raise DeviceFaultError("the address of a vector is not aligned")
        for number, target in enumerate(targets):
            if "relaxed" in suffixes:
                raw = np.stack(
                    [
                        memory.exchange(int(a), size, int(o))
                        for a, o in zip(at, self._owners[lanes], strict=True)
                    ]
                )
            else:
                raw = memory.load(at + number * size, size, self._threads(lanes))
            self.write(target, np.ascontiguousarray(raw).view(dtype)[:, 0], lanes)

    def store(
        self, suffixes: tuple[str, ...], operands: tuple[str, ...], lanes: LaneNumbers
    ) -> None:
        dtype = PTX_DTYPES[suffixes[-1]]
        memory, at = self._place(operands[0], _space(suffixes), lanes)
        size = dtype.itemsize
        sources = _items(operands[1])
        if (at % (size * len(sources))).any():
            raise DeviceFaultError("the address of a vector is not aligned")
        for number, source in enumerate(sources):
            value = np.ascontiguousarray(self.read(source, dtype, lanes)[:, None]).view(np.uint8)
            if "relaxed" in suffixes:
                for each, thread, data in zip(at, self._owners[lanes], value, strict=True):
                    memory.exchange(int(each), size, int(thread))[:] = data
            else:
                memory.store(at + number * size, value, self._threads(lanes))

    def atomic(
        self, suffixes: tuple[str, ...], operands: tuple[str, ...], lanes: LaneNumbers
    ) -> None:
        dtype = PTX_DTYPES[suffixes[-1]]
        result, address, *rest = (
            operands if len(operands) > 2 or "exch" in suffixes else ("_", *operands)
        )
        operation = next(each for each in suffixes if each in _ATOMICS)
        memory, at = self._place(address, _space(suffixes), lanes)
        values = [self.read(each, dtype, lanes) for each in rest]
        old = np.empty(lanes.size, dtype)
        for lane, (each, thread) in enumerate(zip(at, self._owners[lanes], strict=True)):
            view = memory.exchange(int(each), dtype.itemsize, int(thread)).view(dtype)
            old[lane] = view[0]
            view[0] = _ATOMICS[operation](
                old[lane : lane + 1], *(v[lane : lane + 1] for v in values)
            )[0]
        self.write(result, old, lanes)

    def copy_async(
        self, suffixes: tuple[str, ...], operands: tuple[str, ...], lanes: LaneNumbers
    ) -> None:
        """Begin a copy to shared memory, end a group of copies, or wait for groups."""
        if "commit_group" in suffixes:
            self._copies.commit(lanes)
            return
        if "wait_group" in suffixes:
            for copy in self._copies.wait(lanes, int(operands[0])):
                self._shared.complete_copy(copy.at, copy.data, self._threads(copy.lanes))
            return
        size = int(operands[2])
        memory, target = self._place(operands[0], "shared", lanes)
        source_memory, source = self._place(operands[1], "global", lanes)
        data = source_memory.load(source, size, self._threads(lanes))
        memory.begin_copy(target, size, self._threads(lanes))
        self._copies.begin(lanes, target, data)

    # --- other instructions -----------------------------------------------------------------

    def move(
        self, suffixes: tuple[str, ...], operands: tuple[str, ...], lanes: LaneNumbers
    ) -> None:
        target, source = operands
        dtype = PTX_DTYPES[suffixes[-1]]
        if target.startswith("{"):
            names = _items(target)
            part = np.dtype(f"u{dtype.itemsize // len(names)}")
            value = self.read(source, dtype, lanes)
            for number, name in enumerate(names):
                shifted = value >> dtype.type(8 * part.itemsize * number)
                self.write(name, shifted.astype(part), lanes)
        elif source.startswith("{"):
            names = _items(source)
            part = np.dtype(f"u{dtype.itemsize // len(names)}")
            value = np.zeros(lanes.size, dtype)
            for number, name in enumerate(names):
                bits = self.read(name, part, lanes).astype(dtype)
                value |= bits << dtype.type(8 * part.itemsize * number)
            self.write(target, value, lanes)
        else:
            self.write(target, self.read(source, dtype, lanes), lanes)

    def convert_address(
        self, suffixes: tuple[str, ...], operands: tuple[str, ...], lanes: LaneNumbers
    ) -> None:
        value = self.read(operands[1], np.dtype(np.uint64), lanes)
        space = next(each for each in suffixes if each in ("global", "shared", "local", "param"))
        base = np.uint64({"shared": SHARED_BASE, "local": LOCAL_BASE}.get(space, 0))
        self.write(operands[0], value - base if "to" in suffixes else value + base, lanes)

    def convert(
        self, suffixes: tuple[str, ...], operands: tuple[str, ...], lanes: LaneNumbers
    ) -> None:
        to, source = (PTX_DTYPES[each] for each in suffixes[-2:])
        value = self.read(operands[1], source, lanes)
        self.write(operands[0], converted(value, to, suffixes[:-2]), lanes)

    def multiply(
        self, suffixes: tuple[str, ...], operands: tuple[str, ...], lanes: LaneNumbers
    ) -> None:
        dtype = PTX_DTYPES[suffixes[-1]]
        a, b = (self.read(each, dtype, lanes) for each in operands[1:3])
        if "wide" in suffixes:
            wide = np.dtype(f"{dtype.kind}{2 * dtype.itemsize}")
            product = a.astype(wide) * b.astype(wide)
        elif "hi" in suffixes:
            product = BINARY_OPERATIONS["hi"](a, b)
        else:
            product = a * b
        if len(operands) > 3:
            product = product + self.read(operands[3], product.dtype, lanes)
        self.write(operands[0], product, lanes)

    def fuse(
        self, suffixes: tuple[str, ...], operands: tuple[str, ...], lanes: LaneNumbers
    ) -> None:
        values = [self.read(each, PTX_DTYPES[suffixes[-1]], lanes) for each in operands[1:]]
        self.write(operands[0], fused(*values), lanes)

    def extreme(
        self, suffixes: tuple[str, ...], operands: tuple[str, ...], lanes: LaneNumbers, name: str
    ) -> None:
        a, b = (self.read(each, PTX_DTYPES[suffixes[-1]], lanes) for each in operands[1:3])
        self.write(operands[0], least_or_greatest(name, a, b, keeps_nan="NaN" in suffixes), lanes)

    def compare(
        self, suffixes: tuple[str, ...], operands: tuple[str, ...], lanes: LaneNumbers
    ) -> None:
        a, b = (self.read(each, PTX_DTYPES[suffixes[-1]], lanes) for each in operands[1:3])
        result = compared(suffixes[0], a, b)
        if len(suffixes) > 2 and suffixes[1] in ("and", "or", "xor"):
            other = self.read(operands[3].removeprefix("!"), np.dtype(np.bool_), lanes)
            result = BINARY_OPERATIONS[suffixes[1]](result, other != operands[3].startswith("!"))
        self.write(operands[0], result, lanes)

    def select(
        self, suffixes: tuple[str, ...], operands: tuple[str, ...], lanes: LaneNumbers
    ) -> None:
        a, b = (self.read(each, PTX_DTYPES[suffixes[-1]], lanes) for each in operands[1:3])
        condition = self.read(operands[3], np.dtype(np.bool_), lanes)
        self.write(operands[0], np.where(condition, a, b), lanes)

    def extract_bits(
        self, suffixes: tuple[str, ...], operands: tuple[str, ...], lanes: LaneNumbers
    ) -> None:
        dtype, count = PTX_DTYPES[suffixes[-1]], np.dtype(np.uint32)
        value = self.read(operands[1], dtype, lanes)
        start, size = (self.read(each, count, lanes) for each in operands[2:4])
        bits = 8 * dtype.itemsize
        left = (bits - np.minimum(start + size, bits)).astype(np.uint32)
        shifted = BINARY_OPERATIONS["shl"](value, left)
        self.write(operands[0], BINARY_OPERATIONS["shr"](shifted, left + start), lanes)

    def insert_bits(
        self, suffixes: tuple[str, ...], operands: tuple[str, ...], lanes: LaneNumbers
    ) -> None:
        """Replace bits of the second operand by the low bits of the first."""
        dtype, count = PTX_DTYPES[suffixes[-1]], np.dtype(np.uint32)
        field, value = (self.read(each, dtype, lanes) for each in operands[1:3])
        start, size = (self.read(each, count, lanes) & np.uint32(255) for each in operands[3:5])
        every = np.full(lanes.size, ~dtype.type(0))
        low = ~BINARY_OPERATIONS["shl"](every, size)
        mask = BINARY_OPERATIONS["shl"](low, start)
        moved = BINARY_OPERATIONS["shl"](field, start)
        self.write(operands[0], (value & ~mask) | (moved & mask), lanes)


def _shuffle(
    group: _Group, suffixes: tuple[str, ...], operands: tuple[str, ...], lanes: LaneNumbers
) -> None:
    """Read a register of another lane of the warp. All lanes of the mask must execute it together."""
    word = np.dtype(np.uint32)
    target = operands[0].partition("|")[0]
    value, offset, clamp, mask = (group.read(each, word, lanes) for each in operands[1:5])
    thread = lanes % group.block_threads
    lane, first = thread % 32, lanes - thread % 32
    # A lane of the mask is one of the same warp of the same block.
    for number in range(32):
        named = ((mask >> np.uint32(number)) & 1).astype(np.bool_)
        if not np.isin((first + number)[named], lanes).all():
            raise DeviceFaultError("some lanes of a warp reach a shuffle, and others do not")
    segment = (clamp >> np.uint32(8)) & np.uint32(31)
    last = (lane & segment) | (clamp & np.uint32(31) & ~segment)
    source = (lane ^ offset) if "bfly" in suffixes else (lane + offset)
    source = np.where(source <= last, source, lane)
    # What a lane reads of one that is not in the mask is undefined.
    every = np.full(int(lanes.max()) + 32, _UNDEFINED, word)
    every[lanes] = value
    is_named = (mask >> source.astype(np.uint32)) & 1 != 0
    group.write(target, np.where(is_named, every[first + source], word.type(_UNDEFINED)), lanes)


def _permute(
    group: _Group, suffixes: tuple[str, ...], operands: tuple[str, ...], lanes: LaneNumbers
) -> None:
    """Select bytes of two registers."""
    word = np.dtype(np.uint32)
    a, b, selector = (group.read(each, word, lanes) for each in operands[1:4])
    both = np.concatenate([each[:, None].view(np.uint8) for each in (a, b)], axis=1)
    chosen = np.empty((lanes.size, 4), np.uint8)
    for number in range(4):
        nibble = (selector >> np.uint32(4 * number)) & np.uint32(15)
        byte = both[np.arange(lanes.size), nibble & 7]
        sign = np.where(byte & 0x80, np.uint8(0xFF), np.uint8(0))
        chosen[:, number] = np.where(nibble & 8, sign, byte)
    group.write(operands[0], chosen.view(word)[:, 0], lanes)


def _extreme(name: str) -> Any:
    return lambda group, suffixes, operands, lanes: group.extreme(suffixes, operands, lanes, name)


_HANDLERS: Mapping[str, Any] = {
    "ld": _Group.load,
    "ldu": _Group.load,
    "st": _Group.store,
    "atom": _Group.atomic,
    "red": _Group.atomic,
    "mov": _Group.move,
    "cvta": _Group.convert_address,
    "cvt": _Group.convert,
    "mul": _Group.multiply,
    "mad": _Group.multiply,
    "fma": _Group.fuse,
    "min": _extreme("min"),
    "max": _extreme("max"),
    "setp": _Group.compare,
    "selp": _Group.select,
    "bfe": _Group.extract_bits,
    "bfi": _Group.insert_bits,
    "prmt": _permute,
    "shfl": _shuffle,
    "cp": _Group.copy_async,
}
_UNDEFINED = 0xA5A5A5A5
_ATOMICS: Mapping[str, Any] = {
    "add": lambda old, value: old + value,
    "min": lambda old, value: np.minimum(old, value),
    "max": lambda old, value: np.maximum(old, value),
    "and": lambda old, value: old & value,
    "or": lambda old, value: old | value,
    "exch": lambda old, value: value,
    "cas": lambda old, expected, value: np.where(old == expected, value, old),
}


def _special_values(
    thread: LaneNumbers, number: LaneNumbers, *, grid: GridShape, block: GridShape
) -> dict[tuple[str, str], LaneNumbers]:
    """Return the special registers of each thread."""
    values = {}
    for name, flat, shape in (("tid", thread, block), ("ctaid", number, grid)):
        rest = flat
        for dimension, extent in zip("xyz", shape, strict=True):
            values[name, dimension] = rest % extent
            values[f"n{name}", dimension] = np.full(flat.size, extent)
            rest = rest // extent
    return values


def _private_memory(name: str, size: int) -> TrackedMemory:
    is_written = np.zeros(size, np.bool_)
    return TrackedMemory(name, np.full(size, 0xA5, np.uint8), np.ones(size, np.bool_), is_written)


def _space(suffixes: tuple[str, ...]) -> str:
    return next((each for each in suffixes if each in ("global", "shared", "local")), "generic")


def _space_of(address: LaneNumbers) -> str:
    """Return the memory of generic addresses, which must be one for all threads."""
    for space, low, high in (
        ("global", GLOBAL_BASE, 1 << 62),
        ("local", LOCAL_BASE, GLOBAL_BASE),
        ("shared", SHARED_BASE, LOCAL_BASE),
    ):
        if ((address >= low) & (address < high)).all():
            return space
    raise DeviceFaultError("a thread accesses an address that is not in its memory")


def _items(text: str) -> list[str]:
    return [each.strip() for each in text.strip("{}").split(",")]


def _literal(text: str, dtype: np.dtype[Any]) -> Any:
    if text[:2] in ("0f", "0F", "0d", "0D"):
        bits = np.array([int(text[2:], 16)], np.uint32 if text[1] in "fF" else np.uint64)
        # An instruction that moves bits has the type of an integer.
        if dtype.kind != "f":
            return bits.astype(f"u{dtype.itemsize}").view(dtype)[0]
        return bits.view(np.float32 if text[1] in "fF" else np.float64).astype(dtype)[0]
    number = int(text.removesuffix("U"), 0)
    if dtype == np.bool_:
        return np.bool_(number)
    raw = np.array([number & ((1 << 64) - 1)], np.uint64)
    return raw.astype(f"u{dtype.itemsize}").view(dtype)[0]


def _as_bits(value: int | float, dtype: np.dtype[Any]) -> Any:
    if isinstance(value, float):
        return np.array([value], f"f{dtype.itemsize}").view(f"u{dtype.itemsize}")[0]
    return _literal(str(int(value)), dtype)
