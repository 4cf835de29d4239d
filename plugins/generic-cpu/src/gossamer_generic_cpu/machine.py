"""LLVM for one CPU: its triple, its target machine, its data layout."""

from __future__ import annotations

import threading
from functools import cache

import llvmlite.binding as llvm
from llvmlite.binding import ffi

from gossamer_backend.exclusion import compiling
from gossamer_generic_cpu.cpus import Cpu

CODEGEN_LEVEL = 2


class Visits:
    """Which thread is inside of LLVM; llvmlite lets in one at a time, whichever library it works for."""

    def __init__(self) -> None:
        self._thread = 0
        self._depth = 0

    def begin(self) -> None:
        """Called by each thread after it has taken llvmlite's lock."""
        self._thread = threading.get_ident()
        self._depth += 1

    def end(self) -> None:
        """Called before the lock is released, also by a thread that was inside when counting began."""
        self._depth = max(self._depth - 1, 0)

    def is_other(self) -> bool:
        """Whether a thread other than this one is inside."""
        return self._depth > 0 and self._thread != threading.get_ident()


_visits = Visits()
ffi.register_lock_callback(_visits.begin, _visits.end)
# Other libraries call LLVM without `compiling`; this one takes it around all that it does there.
compiling.include(_visits.is_other)


@cache
@compiling
def initialize() -> None:
    """Makes LLVM's native code generator available; any number of calls."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@compiling
def triple() -> str:
    """The triple of this process."""
    return str(llvm.get_process_triple())


@cache
@compiling
def target_machine(cpu: Cpu) -> llvm.TargetMachine:
    """Generates position-independent code, so that an object can be exported as well as loaded."""
    initialize()
    target = llvm.Target.from_triple(triple())
    return target.create_target_machine(
        cpu=cpu.name, features=cpu.features, opt=CODEGEN_LEVEL, reloc="pic", codemodel="default"
    )


@cache
@compiling
def data_layout(cpu: Cpu) -> str:
    """The layout that a module for this CPU must state."""
    return str(target_machine(cpu).target_data)
