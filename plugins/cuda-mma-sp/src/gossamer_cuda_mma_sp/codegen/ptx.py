"""Compile flat modules to LLVM IR and PTX, on any machine."""

from __future__ import annotations

import re
from functools import cache

import llvmlite.binding as llvm

from gossamer_cuda_mma_sp.codegen.fragments.lower_fragments import lower_fragments
from gossamer_cuda_mma_sp.codegen.fragments.overlap_products import overlap_products
from gossamer_cuda_mma_sp.device_code import SCRIPT_NAME, kernels_of
from gossamer_cuda_mma_sp.target.gpu import Gpu
from gossamer_ir.core.math_functions import INSTRUCTIONS
from gossamer_ir.errors import InternalError
from gossamer_ir.nodes import Module
from gossamer_llvm import TargetInfo, emit_llvm_ir, nvptx_lowering
from gossamer_llvm.optimization import optimize, parse
from gossamer_llvm.target_machines import cross_target_machine
from gossamer_lower import lower_to_device, pipeline_loops

TRIPLE = "nvptx64-nvidia-cuda"
_EXTERNAL_FUNCTION = re.compile(
    r"^\.extern\b(?! \.shared \.align (?:16|1024) \.b8 gossamer_kernel).*", re.MULTILINE
)


def split_module(module: Module, gpu: Gpu) -> Module:
    """Return a flat module as an entry, which a host interprets, and kernels without fragments."""
    pipelined = pipeline_loops(lower_fragments(module, gpu))
    return lower_to_device(overlap_products(pipelined))


def device_text(module: Module, gpu: Gpu) -> str:
    """Return the LLVM IR of the kernels of a split module as it is emitted, before any pass."""
    script = SCRIPT_NAME if gpu.has_line_info else None
    architecture = gpu.architecture
    lowering = nvptx_lowering(
        has_async_copies=architecture.has_async_copies,
        max_shared_bytes=architecture.block_memory,
    )
    return emit_llvm_ir(
        kernels_of(module), target_info=_target_info(gpu), lowering=lowering, script=script
    )


def ptx_text(module: Module, gpu: Gpu) -> str:
    """Return the PTX of the kernels of a split module."""
    parsed = parse(device_text(module, gpu))
    optimize(parsed, _target_machine(gpu))
    return without_externals(str(_target_machine(gpu).emit_assembly(parsed)))


def without_externals(ptx: str) -> str:
    """Return PTX unchanged; raise `InternalError` if it names functions of a library that no driver has.

    LLVM declares an intrinsic that it does not know as such a function. Dynamic shared memory is external,
    too: a launch says how large it is.

    >>> without_externals(".extern .func llvm_misspelt ()")
    Traceback (most recent call last):
    gossamer_support.errors.InternalError: The emitted PTX refers to a function ... .func llvm_misspelt ()
    """
    leaked = _EXTERNAL_FUNCTION.search(ptx)
    if leaked is not None:
        raise InternalError(f"The emitted PTX refers to a function outside of it: {leaked[0]}")
    return ptx


@cache
def _target_info(gpu: Gpu) -> TargetInfo:
    return TargetInfo(
        triple=TRIPLE,
        data_layout=str(_target_machine(gpu).target_data),
        functions=INSTRUCTIONS,
        is_device=True,
        loop_alignment=0,
    )


@cache
def _target_machine(gpu: Gpu) -> llvm.TargetMachine:
    return cross_target_machine(TRIPLE, cpu=gpu.architecture.name, features=gpu.llvm_features)
