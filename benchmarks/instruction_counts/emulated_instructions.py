"""Counts the instructions that a function executes in an emulated process of AArch64 or RISC-V.

The emulator translates each instruction into a block of its own (`-singlestep`) and writes a line for each
block that it executes (`-d exec,nochain`), in the range of addresses of the function alone (`-dfilter`). So
the count is exact, and the same in every run.
"""

from __future__ import annotations

import re
import struct
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from benchmarks.part import PartError

CALLER = Path(__file__).with_name("emulated_call.c")
SECTION = "measured"
ArgumentOfC: TypeAlias = int | np.ndarray[Any, Any]

_EXECUTED = re.compile(rb"Trace .*\[[0-9a-f]+/([0-9a-f]+)/")
_LISTED = re.compile(r"^\s*([0-9a-f]+):\t[0-9a-f]{8} \t(\S+)(.*)$", re.MULTILINE)
_SCALAR_LOADS = {"ldrb": 1, "ldrsb": 1, "ldrh": 2, "ldrsh": 2, "ldrsw": 4, "ldpsw": 8}
_REGISTER_BYTES = {"w": 4, "x": 8, "b": 1, "h": 2, "s": 4, "d": 8, "q": 16}


class EmulatedCpu(NamedTuple):
    """A program that emulates processes of an architecture, the prefix of its compilers, and the CPU that
    it emulates, with places for the length of vectors. `has_known_loads`: the bytes that an instruction loads
    follow from it and from the length of vectors."""

    emulator: str
    toolchain: str
    cpu: str
    has_known_loads: bool


ARM_SVE = EmulatedCpu(
    "qemu-aarch64-static",
    "aarch64-linux-gnu-",
    "max,sve-max-vq={units},sve-default-vector-length={bytes},sme-default-vector-length={bytes}",
    has_known_loads=True,
)
"""An Arm CPU with SVE, with vectors of the same length in streaming mode."""

RISCV_V = EmulatedCpu(
    "qemu-riscv64-static",
    "riscv64-linux-gnu-",
    "rv64,v=true,vext_spec=v1.0,vlen={bits},elen=64,Zfh=true",
    # An instruction loads as many elements as the last `vsetvli` said.
    has_known_loads=False,
)
"""A RISC-V CPU with the vector extension."""


class Execution(NamedTuple):
    """The number of executed instructions, the bytes that they load if all lanes are active (None: unknown),
    and the arrays afterward, by their positions among the arguments."""

    instructions: int
    loaded_bytes: int | None
    arrays: Mapping[int, np.ndarray[Any, Any]]


class Executable:
    """A program that calls a function of an object file."""

    def __init__(
        self, code: Path, *, name: str, folder: Path, machine: EmulatedCpu = ARM_SVE
    ) -> None:
        self._machine = machine
        self._path = folder / f"{code.stem}.exe"
        moved = folder / f"{code.stem}-moved.o"
        rename = ("--rename-section", f".text={SECTION}", "--redefine-sym", f"{name}=entry")
        output_of(f"{machine.toolchain}objcopy", *rename, str(code), str(moved))
        output_of(
            f"{machine.toolchain}gcc", "-O2", "-static", "-no-pie", str(CALLER), str(moved), "-lm", "-o",
            str(self._path),
        )  # fmt: skip
        self._range = output_of(machine.emulator, str(self._path), "range").decode().strip()
        self.listing = self._listing() if machine.has_known_loads else {}

    def call(self, arguments: Sequence[ArgumentOfC], *, vector_bits: int) -> Execution:
        """Call the function with vectors of a length in bits."""
        log = self._path.with_suffix(".log")
        size = vector_bits // 8
        cpu = self._machine.cpu.format(units=size // 16, bytes=size, bits=vector_bits)
        logged = ("-singlestep", "-d", "exec,nochain", "-dfilter", self._range, "-D", str(log))
        output = output_of(
            self._machine.emulator,
            "-cpu",
            cpu,
            *logged,
            str(self._path),
            stdin=_encode_arguments(arguments),
        )
        executed = Counter(int(at, 16) for at in _EXECUTED.findall(log.read_bytes()))
        log.unlink()
        loaded = None
        if self._machine.has_known_loads:
            loaded = sum(
                count * loaded_bytes(self.listing[at], vector_bytes=size)
                for at, count in executed.items()
            )
        return Execution(executed.total(), loaded, _decode_arrays(output, arguments))

    def _listing(self) -> dict[int, str]:
        """Return the instructions of the function by their addresses."""
        command = (f"{self._machine.toolchain}objdump", "-d", "-j", SECTION, str(self._path))
        listed = _LISTED.findall(output_of(*command).decode())
        return {int(address, 16): f"{op}{operands}" for address, op, operands in listed}


def loaded_bytes(instruction: str, *, vector_bytes: int) -> int:
    """Return the bytes that an instruction loads, with all lanes active.

    >>> loaded_bytes("ld1w {z1.s}, p0/z, [x1, x2, lsl #2]", vector_bytes=64)
    64
    >>> loaded_bytes("ld1w {za0h.s[w12, 0]}, p0/z, [x1]", vector_bytes=64)
    64
    >>> loaded_bytes("ldp w8, w9, [x3]", vector_bytes=64)
    8
    >>> loaded_bytes("fmla z0.s, p0/m, z1.s, z2.s", vector_bytes=64)
    0
    """
    op, _, operands = instruction.replace("\t", " ").partition(" ")
    if re.match(r"ld(nt|ff|nf)?1r?[bhwd]|ld1s", op):
        lane = {"b": 1, "h": 2, "s": 4, "d": 8}[re.search(r"z\w*\.([bhsd])", operands)[1]]  # type: ignore[index]
        stored = {"b": 1, "h": 2, "w": 4, "d": 8}[op[-1]]
        return stored if op.startswith("ld1r") else vector_bytes // lane * stored
    if not op.startswith("ld"):
        return 0
    register = operands.strip()[0]
    if register == "z":
        return vector_bytes
    if register == "p":
        return vector_bytes // 8
    each = _SCALAR_LOADS.get(op, _REGISTER_BYTES.get(register, 0))
    return each * (2 if op == "ldp" else 1)


def output_of(*command: str, stdin: bytes = b"") -> bytes:
    """Return the output of a program; raise `PartError` if it fails or is absent."""
    try:
        done = subprocess.run(command, input=stdin, capture_output=True, check=False)
    except FileNotFoundError:
        raise PartError(f"{command[0]} is not installed") from None
    if done.returncode:
        raise PartError(f"{' '.join(command)} failed: {done.stderr.decode(errors='replace')}")
    return done.stdout


def _encode_arguments(arguments: Sequence[ArgumentOfC]) -> bytes:
    parts = [struct.pack("<q", len(arguments))]
    for value in arguments:
        if isinstance(value, np.ndarray):
            parts += [struct.pack("<q", value.nbytes), value.tobytes()]
        else:
            parts.append(struct.pack("<qq", -1, value))
    return b"".join(parts)


def _decode_arrays(
    output: bytes, arguments: Sequence[ArgumentOfC]
) -> dict[int, np.ndarray[Any, Any]]:
    arrays, at = {}, 0
    for number, value in enumerate(arguments):
        if isinstance(value, np.ndarray):
            part = output[at : at + value.nbytes]
            arrays[number] = np.frombuffer(part, value.dtype).reshape(value.shape)
            at += value.nbytes
    return arrays
