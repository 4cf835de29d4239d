"""LLVM for one CPU: its triple, its target machine, its data layout."""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm

from gossamer_backend.fork import compiling
from gossamer_generic_cpu.target.llvm_cpu import Cpu

CODEGEN_LEVEL = 2

# Nobody is inside LLVM when the process forks or ends, whoever it is that uses llvmlite.
compiling.include(llvm.ffi.lib._lock)


@cache
def initialize() -> None:
    """Makes LLVM's native code generator available; any number of calls."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def triple() -> str:
    """The triple of this process."""
    return str(llvm.get_process_triple())


@cache
def target_machine(cpu: Cpu) -> llvm.TargetMachine:
    """Generates position-independent code, so that an object can be exported as well as loaded."""
    initialize()
    target = llvm.Target.from_triple(triple())
    return target.create_target_machine(
        cpu=cpu.name, features=cpu.features, opt=CODEGEN_LEVEL, reloc="pic", codemodel="default"
    )


@cache
def data_layout(cpu: Cpu) -> str:
    """The layout that a module for this CPU must state."""
    return str(target_machine(cpu).target_data)
