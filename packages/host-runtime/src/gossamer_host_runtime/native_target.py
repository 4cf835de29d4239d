"""LLVM's triple, target machine and data layout for a CPU of the architecture of this process."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

import llvmlite.binding as llvm

from gossamer_host_runtime.detection.llvm_cpu import Cpu
from gossamer_support.fork import compiling
from gossamer_support.typed_calls import typed

# `-O2`, the default of LLVM.
CODEGEN_LEVEL = 2


def _lock_of_llvmlite() -> AbstractContextManager[object]:
    """Return the lock that llvmlite holds while a thread is inside LLVM.

    It has no public name. `register_lock_callback` is not a substitute: it calls back when a thread has the
    lock already, so a fork could still come between.
    """
    lock: AbstractContextManager[object] = llvm.ffi.lib._lock
    return lock


# No thread may be inside LLVM when the process forks or ends. All code of gossamer that calls LLVM holds
# `compiling`, but another library may use llvmlite in a thread of its own, and a child that is forked then
# would wait for llvmlite's lock forever.
compiling.include(_lock_of_llvmlite())


@cache
def initialize() -> None:
    """Initialize LLVM's native code generator; repeated calls do nothing."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def triple() -> str:
    """Return the triple of this process.

    >>> triple().count("-") >= 2
    True
    """
    return str(llvm.get_process_triple())


@typed
def target_machine(cpu: Cpu, *, level: int = CODEGEN_LEVEL) -> llvm.TargetMachine:
    """Return a target machine for position-independent code, which can be both exported and loaded.

    >>> from gossamer_host_runtime import host_cpu
    >>> target_machine(host_cpu()).triple == triple()
    True
    """
    return _target_machine(cpu, level)


@cache
def _target_machine(cpu: Cpu, level: int) -> llvm.TargetMachine:
    initialize()
    target = llvm.Target.from_triple(triple())
    return target.create_target_machine(
        cpu=cpu.name, features=cpu.features, opt=level, reloc="pic", codemodel="default"
    )


@typed
def data_layout(cpu: Cpu) -> str:
    """Return the data layout of modules for this CPU.

    >>> from gossamer_host_runtime import host_cpu
    >>> data_layout(host_cpu()).startswith("e-")
    True
    """
    return str(target_machine(cpu).target_data)
