"""Parallel regions without a thread library: threads are started and joined for each region.

The function has the signature of GOMP_parallel, and works where neither the pool nor libgomp can be used.
"""

from __future__ import annotations

import ctypes
from functools import cache

from gossamer_host_runtime.detection.llvm_cpu import host_cpu
from gossamer_host_runtime.loading.loader import load_object
from gossamer_host_runtime.native_target import target_machine, triple
from gossamer_host_runtime.parallel.native_code import PARALLEL_SYMBOL, read_llvm_file
from gossamer_llvm.optimization import parse


@cache
def fallback_parallel() -> int | None:
    """Return the address of the function, or None if this system has no POSIX threads."""
    if not hasattr(ctypes.CDLL(None), "pthread_create"):
        return None
    text = f'target triple = "{triple()}"\n{read_llvm_file("per_region.ll")}'
    code = target_machine(host_cpu()).emit_object(parse(text))
    address, library = load_object(code, PARALLEL_SYMBOL)
    # The library owns the code, which would be unmapped with it.
    _loaded.append(library)
    return address


_loaded: list[object] = []
