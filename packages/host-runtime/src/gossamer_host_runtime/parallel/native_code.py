"""Functions in LLVM IR that Python calls or hands to kernels, with a structure that they read."""

from __future__ import annotations

import ctypes
import hashlib
import sys
from pathlib import Path
from typing import Any

from gossamer_backend.plugin_api import Artifact, ArtifactCache, combined_version
from gossamer_host_runtime.detection.architecture import architecture
from gossamer_host_runtime.loading.loader import load_object
from gossamer_ir.errors import InternalError
from gossamer_ir.interchange.records import Signature

PARALLEL_SYMBOL = "gossamer_parallel"
"""The function that runs a parallel region, in the pool and without it."""

PLACEHOLDER = 0x5F6C6F6F705F7367
"""Stands in the LLVM IR and the object code for the address of the structure, which differs between
processes."""

UNOPTIMIZED = 0
"""`-O0`: without cached code, the first parallel call of a process takes 13 ms less than with `-O2`,
and regions take as long."""


def function_address(name: str) -> int | None:
    """Return the address of a function of this process, such as one of the C library or of Python."""
    return ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value


def read_llvm_file(name: str) -> str:
    """Return the LLVM IR in a file of this folder."""
    return Path(__file__).with_name(name).read_text("utf-8")


def load_with_structure(text: str, symbol: str, structure: ctypes.Structure) -> tuple[int, object]:
    """Return the address of a function in LLVM IR, and what keeps it loaded. The text has `PLACEHOLDER`, as
    `u0x...`, where the address of the structure belongs."""
    code = _object_code(text, symbol)
    # The address is put into the object code: a relocation would need a linker, and so LLVM.
    before, placeholder, after = code.partition(PLACEHOLDER.to_bytes(8, sys.byteorder))
    if not placeholder:
        raise InternalError(f"The object code of {symbol} has no address of its structure.")
    address = ctypes.addressof(structure).to_bytes(8, sys.byteorder)
    return load_object(before + address + after, symbol)


def make_immortal(value: object) -> None:
    """Keep an object from being freed, even when the interpreter ends."""
    pythonapi: Any = ctypes.pythonapi
    pythonapi.Py_IncRef(ctypes.py_object(value))


def _object_code(text: str, symbol: str) -> bytes:
    """Return the object code, from the kernel cache if possible: importing LLVM takes longer than that."""
    version = combined_version("gossamer-host-runtime", "gossamer-llvm", "llvmlite")
    named = f"{version} {symbol} {architecture()} {UNOPTIMIZED} {text}"
    key = hashlib.sha256(named.encode()).hexdigest()
    kernels = ArtifactCache()
    artifact = kernels.get(key)
    if artifact is None:
        code = _compile(text)
        signature = Signature(symbol, (), (), ())
        artifact = Artifact("host-runtime", version, "host-runtime", signature, code)
        kernels.put(key, artifact)
    return artifact.code


def _compile(text: str) -> bytes:
    from gossamer_host_runtime.detection.llvm_cpu import any_cpu
    from gossamer_host_runtime.native_target import target_machine, triple
    from gossamer_llvm.optimization import parse

    module = parse(f'target triple = "{triple()}"\n{text}')
    # For all CPUs of the architecture, since the cache may be shared between machines.
    return bytes(target_machine(any_cpu(), level=UNOPTIMIZED).emit_object(module))
