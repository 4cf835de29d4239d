"""The code of an artifact: PTX, and the entry, which a host interprets."""

from __future__ import annotations

import re
from typing import TypeAlias

import msgspec

from gossamer_ir import dumps, loads
from gossamer_ir.interchange.kernel_abi import KERNEL_SYMBOL
from gossamer_ir.nodes import Module

GridShape: TypeAlias = tuple[int, int, int]
"""Numbers of blocks, or of threads of a block, along x, y and z."""


_DYNAMIC_MEMORY = re.compile(r"^\.extern \.shared .*?(\w+)_shared_(\d+)\[\]", re.MULTILINE)
SCRIPT_NAME = f"{KERNEL_SYMBOL}.py"
"""The file whose lines PTX with line information names: it has the printed kernels."""


def kernels_of(split: Module) -> Module:
    """Return a module of the kernels of a split module alone."""
    kernels = tuple(function for function in split.functions if function.name != split.entry)
    return Module("flat", kernels, kernels[0].name if kernels else split.entry)


class DeviceCode(msgspec.Struct, frozen=True):
    """The PTX of kernels, and the split module whose entry launches them. The kernel of function number n is
    `gossamer_kernel` if n is 1, else `gossamer_kernel_<n - 1>`.

    >>> from gossamer_ir.nodes import Function
    >>> code = DeviceCode("// PTX", Module("flat", (Function("f", (), ()),), "f"))
    >>> DeviceCode.decode(code.encode()) == code
    True
    """

    ptx: str
    module: Module

    def encode(self) -> bytes:
        """Return the code as bytes for `decode`."""
        return msgspec.msgpack.encode((self.ptx, dumps(self.module)))

    @staticmethod
    def decode(data: bytes) -> DeviceCode:
        """Decode the bytes of `encode`."""
        ptx, module = msgspec.msgpack.decode(data, type=tuple[str, bytes])
        return DeviceCode(ptx, loads(module))

    @property
    def script(self) -> str:
        """The kernels as script text, whose lines PTX with line information names."""
        from gossamer_ir.script import print_module

        return print_module(kernels_of(self.module))

    @property
    def dynamic_bytes(self) -> dict[str, int]:
        """The bytes of dynamic shared memory of the kernels that have any, by their symbols.

        >>> ptx = ".extern .shared .align 16 .b8 gossamer_kernel_shared_65536[];"
        >>> DeviceCode(ptx, Module("flat", (), "f")).dynamic_bytes
        {'gossamer_kernel': 65536}
        """
        return {symbol: int(size) for symbol, size in _DYNAMIC_MEMORY.findall(self.ptx)}

    @property
    def symbols(self) -> dict[str, str]:
        """The symbols of kernels by the names of their functions."""
        kernels = [
            function.name
            for function in self.module.functions
            if function.name != self.module.entry
        ]
        return {
            name: f"{KERNEL_SYMBOL}_{number}" if number else KERNEL_SYMBOL
            for number, name in enumerate(kernels)
        }
