"""The registers of the threads of a grid, each an array with a lane for each thread."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from gossamer_cuda_mma_sp.device_code import GridShape
from gossamer_cuda_mma_sp.interpreter.memory import DeviceFaultError, LaneNumbers
from gossamer_cuda_mma_sp.interpreter.operations import LaneValues
from gossamer_cuda_mma_sp.interpreter.program import KernelProgram

_REGISTER_DTYPES = {1: np.dtype(np.bool_)} | {
    bits: np.dtype(f"u{bits // 8}") for bits in (8, 16, 32, 64)
}
_READ, _SUMMED = 1, 2
_SPECIAL = re.compile(r"^%(tid|ntid|ctaid|nctaid)\.([xyz])$")


class ThreadRegisters:
    """The registers of some threads. `special` are those that the device sets, by name and dimension."""

    def __init__(
        self, program: KernelProgram, count: int, special: dict[tuple[str, str], LaneNumbers]
    ) -> None:
        self._program, self._count, self._special = program, count, special
        self._registers: dict[str, LaneValues] = {}
        self._defined: dict[str, npt.NDArray[np.bool_]] = {}
        self._complete: set[str] = set()
        """The registers that all threads wrote at once."""
        self._held: dict[str, npt.NDArray[np.int8]] = {}
        """The registers that products may still use, and how: `_READ` or `_SUMMED` for each thread."""
        has_products = any(instruction.name == "wgmma" for instruction in program.instructions)
        self._unfenced: dict[str, npt.NDArray[np.bool_]] | None = {} if has_products else None
        """The registers that threads accessed since the last fence; None without products."""

    def read(self, text: str, dtype: np.dtype[Any], lanes: LaneNumbers) -> LaneValues:
        """Return an operand in each thread; raise `DeviceFaultError` for a register that nothing wrote."""
        if text in self._program.registers:
            self._note_access(text, lanes)
            if text not in self._complete:
                defined = self._defined.get(text)
                if defined is None or np.count_nonzero(defined[lanes]) < lanes.size:
                    raise DeviceFaultError(
                        f"a thread reads the register {text}, which nothing wrote"
                    )
            raw = self._registers[text]
            raw = raw.copy() if lanes.size == self._count else raw[lanes]
            if raw.dtype is dtype:
                return raw
            if raw.dtype.kind == "b" or dtype.kind == "b":
                return raw.astype(dtype)
            if raw.dtype.itemsize != dtype.itemsize:
                raw = raw.astype(f"u{dtype.itemsize}")
            return raw.view(dtype)
        if text.startswith("%") and (special := _SPECIAL.match(text)):
            return self._special[special[1], special[2]][lanes].astype(np.uint32).astype(dtype)
        if text in self._program.symbols:
            return np.full(lanes.size, self._program.symbols[text], dtype)
        return _repeated_literal(text, dtype, lanes.size)

    def write(self, register: str, value: LaneValues, lanes: LaneNumbers) -> None:
        """Set a register of each thread; `_` is none."""
        if register == "_":
            return
        self._note_access(register, lanes)
        target = _REGISTER_DTYPES[self._program.registers[register]]
        if register not in self._registers:
            self._registers[register] = np.zeros(self._count, target)
            self._defined[register] = np.zeros(self._count, np.bool_)
        if value.dtype is target:
            raw = value
        elif target.kind == "b":
            raw = value.astype(np.bool_)
        elif value.dtype.kind == "b":
            raw = value.astype(target)
        elif value.dtype.itemsize == target.itemsize:
            raw = value.view(target)
        elif value.dtype.kind == "i":
            raw = value.astype(f"i{target.itemsize}").view(target)
        else:
            raw = value.view(f"u{value.dtype.itemsize}").astype(target)
        if lanes.size == self._count:
            self._registers[register][:] = raw
            self._complete.add(register)
        else:
            self._registers[register][lanes] = raw
            self._defined[register][lanes] = True

    def fence(self, lanes: LaneNumbers) -> None:
        """Order the accesses of threads to registers with the products that follow."""
        for unfenced in (self._unfenced or {}).values():
            unfenced[lanes] = False

    def begin_product(self, sums: Sequence[str], inputs: Sequence[str], lanes: LaneNumbers) -> None:
        """Let a product use registers; raise `DeviceFaultError` for those that threads accessed after the
        last fence, and for inputs that are the sums of another product."""
        for register in (*sums, *inputs):
            unfenced = (self._unfenced or {}).get(register)
            if unfenced is not None and unfenced[lanes].any():
                raise DeviceFaultError(
                    f"a product uses the register {register}, which a thread accessed after the last "
                    "'wgmma.fence'"
                )
        for register in inputs:
            held = self._held.get(register)
            if held is not None and (held[lanes] == _SUMMED).any():
                raise DeviceFaultError(f"a product reads the sum {register} of another one")
        self.release((*sums, *inputs), lanes)

    def hold(self, registers: Sequence[str], sums: Sequence[str], lanes: LaneNumbers) -> None:
        """Keep registers for a product that threads have begun; what it accessed itself is fenced."""
        for register in registers:
            held = self._held.setdefault(register, np.zeros(self._count, np.int8))
            held[lanes] = _SUMMED if register in sums else _READ
            if self._unfenced and register in self._unfenced:
                self._unfenced[register][lanes] = False

    def release(self, registers: Sequence[str], lanes: LaneNumbers) -> None:
        """Let threads access registers again."""
        for register in registers:
            if register in self._held:
                self._held[register][lanes] = 0

    def _note_access(self, register: str, lanes: LaneNumbers) -> None:
        """Note that threads access a register; raise `DeviceFaultError` if a product may still use it."""
        if self._unfenced is None:
            return
        held = self._held.get(register)
        if held is not None and held[lanes].any():
            raise DeviceFaultError(
                f"a thread accesses the register {register} of a product that it has not waited for"
            )
        self._unfenced.setdefault(register, np.zeros(self._count, np.bool_))[lanes] = True


def special_registers(
    thread: LaneNumbers, number: LaneNumbers, *, grid: GridShape, block: GridShape
) -> dict[tuple[str, str], LaneNumbers]:
    """Return the special registers of threads: `thread` are their numbers in their blocks, `number` those of
    the blocks.

    >>> special = special_registers(np.arange(4), np.zeros(4), grid=(1, 1, 1), block=(2, 2, 1))
    >>> special["tid", "y"].tolist()
    [0, 0, 1, 1]
    """
    values = {}
    for name, flat, shape in (("tid", thread, block), ("ctaid", number, grid)):
        rest = flat
        for dimension, extent in zip("xyz", shape, strict=True):
            values[name, dimension] = rest % extent
            values[f"n{name}", dimension] = np.full(flat.size, extent)
            rest = rest // extent
    return values


@lru_cache(1024)
def _repeated_literal(text: str, dtype: np.dtype[Any], count: int) -> LaneValues:
    """Return a literal for each thread, which callers must not change."""
    values = np.full(count, ptx_literal(text, dtype))
    values.flags.writeable = False
    return values


@lru_cache(1024)
def ptx_literal(text: str, dtype: np.dtype[Any]) -> Any:
    """Return the value of a literal of PTX.

    >>> float(ptx_literal("0f3F800000", np.dtype(np.float32))), int(ptx_literal("-1", np.dtype(np.int8)))
    (1.0, -1)
    """
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
