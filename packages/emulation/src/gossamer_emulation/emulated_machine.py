"""The architectures that can be emulated, and the machines of them."""

from __future__ import annotations

from typing import NamedTuple

REGISTER_ARGUMENTS = 8
"""The number of integers of a call that are passed in registers, and that of floats; both architectures have
the same."""


class Architecture(NamedTuple):
    """An architecture: LLVM's triple, the emulator of QEMU for programs, the cross compiler that makes the
    program of the emulated process, and the packages of Debian that have this compiler.

    `has_floats_among_integers`: floats that are passed when the registers of floats are used up take those of
    integers. Otherwise they are on the stack.

    >>> from gossamer_emulation import AARCH64
    >>> AARCH64.name, AARCH64.emulator
    ('aarch64', 'qemu-aarch64-static')
    """

    triple: str
    emulator: str
    compiler: str
    compiler_packages: str
    has_floats_among_integers: bool

    @property
    def name(self) -> str:
        """The first part of the triple."""
        return self.triple.partition("-")[0]

    def stack_arguments(self, *, integers: int, floats: int) -> int:
        """Return how many of the arguments of a call are on the stack.

        >>> from gossamer_emulation import AARCH64, RISCV64
        >>> [one.stack_arguments(integers=6, floats=11) for one in (AARCH64, RISCV64)]
        [3, 1]
        """
        other_floats = max(0, floats - REGISTER_ARGUMENTS)
        if self.has_floats_among_integers:
            return max(0, integers + other_floats - REGISTER_ARGUMENTS)
        return max(0, integers - REGISTER_ARGUMENTS) + other_floats


AARCH64 = Architecture(
    triple="aarch64-unknown-linux-gnu",
    emulator="qemu-aarch64-static",
    compiler="aarch64-linux-gnu-gcc",
    compiler_packages="gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
    has_floats_among_integers=False,
)
RISCV64 = Architecture(
    triple="riscv64-unknown-linux-gnu",
    emulator="qemu-riscv64-static",
    compiler="riscv64-linux-gnu-gcc",
    compiler_packages="gcc-riscv64-linux-gnu libc6-dev-riscv64-cross",
    has_floats_among_integers=True,
)


class EmulatedMachine(NamedTuple):
    """A machine of an architecture: `cpu` is a CPU with its properties as the option `-cpu` of the emulator
    takes them.

    >>> from gossamer_emulation import RISCV64, EmulatedMachine
    >>> EmulatedMachine(RISCV64, "rv64,v=true,vext_spec=v1.0,vlen=256").architecture.name
    'riscv64'
    """

    architecture: Architecture
    cpu: str
