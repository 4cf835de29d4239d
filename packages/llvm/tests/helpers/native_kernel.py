"""Flat modules that LLVM compiles and runs in this process."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import NamedTuple

import llvmlite.binding as llvm
import numpy as np

from gossamer_ir.interchange.kernel_abi import NOT_GUARDED
from gossamer_ir.nodes import Module
from gossamer_llvm import TargetInfo, emit_llvm_ir

FUNCTIONS = frozenset({"sqrt", "abs", "floor", "ceil", "fma", "popcount", "ctz"})
REGION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
"""The function that each thread of a parallel region runs."""
PARALLEL = ctypes.CFUNCTYPE(None, REGION, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
INTERRUPTED = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.POINTER(ctypes.c_int64))


class Workspace(ctypes.Structure):
    """`struct gossamer_workspace`."""

    _fields_ = (
        ("threads", ctypes.c_int64),
        ("parallel", PARALLEL),
        ("failed_buffer", ctypes.c_int64),
        ("is_interrupted", INTERRUPTED),
    )


class NativeRun(NamedTuple):
    """The status of a call, and the number of the buffer whose check failed."""

    status: int
    failed_buffer: int


def run_native(
    flat: Module,
    arrays: Sequence[np.ndarray],
    *sizes: int,
    threads: int = 1,
    parallel: Callable[..., None] | None = None,
    is_interrupted: Callable[..., int] | None = None,
) -> NativeRun:
    """Calls the entry with arrays and then sizes, and with what a caller puts into the workspace."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple = llvm.get_process_triple()
    parsed = llvm.parse_assembly(
        emit_llvm_ir(flat, target_info=TargetInfo(triple, functions=FUNCTIONS))
    )
    parsed.verify()
    machine = llvm.Target.from_triple(triple).create_target_machine()
    workspace = Workspace(threads=threads, failed_buffer=NOT_GUARDED)
    if parallel is not None:
        workspace.parallel = PARALLEL(parallel)
    if is_interrupted is not None:
        workspace.is_interrupted = INTERRUPTED(is_interrupted)
    with llvm.create_mcjit_compiler(parsed, machine) as engine:
        engine.finalize_object()
        pointers = [ctypes.c_void_p] * len(arrays)
        numbers = [ctypes.c_int64] * len(sizes)
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, *pointers, *numbers, ctypes.c_void_p)
        kernel = kind(engine.get_function_address("gossamer_kernel"))
        addresses = (array.ctypes.data for array in arrays)
        status = kernel(*addresses, *sizes, ctypes.addressof(workspace))
    return NativeRun(status, workspace.failed_buffer)
