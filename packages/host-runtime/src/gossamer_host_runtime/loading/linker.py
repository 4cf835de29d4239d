"""Load object code into the memory of this process by LLVM's linker, with one LLJIT."""

from __future__ import annotations

import itertools
import sys
from functools import cache

import llvmlite.binding as llvm

from gossamer_host_runtime.detection.llvm_cpu import host_cpu
from gossamer_host_runtime.loading.object_file import malformed_error, without_unwind_tables
from gossamer_host_runtime.native_target import target_machine
from gossamer_support.fork import compiling

# LLJIT refuses a second library of the same name.
_numbers = itertools.count(1)


def link_object(code: bytes, symbol: str) -> tuple[int, object]:
    """Return the address of a symbol, and the object that keeps the code loaded.

    `ArgumentError` (`host_runtime.object`) if the bytes are malformed or the linker refuses them.
    """
    builder = llvm.JITLibraryBuilder()
    builder.add_object_img(without_unwind_tables(code)).add_current_process().export_symbol(symbol)
    with compiling:
        try:
            library = builder.link(_compiler(), f"gossamer{next(_numbers)}")
        except RuntimeError as error:
            raise malformed_error(code, str(error).rstrip(".")) from error
    return int(library[symbol]), library


@cache
def _compiler() -> llvm.LLJIT:
    # JITLink keeps code and constants of an object together, so that 32-bit distances always suffice.
    is_linked = sys.platform != "win32"
    return llvm.create_lljit_compiler(target_machine(host_cpu()), use_jit_link=is_linked)
