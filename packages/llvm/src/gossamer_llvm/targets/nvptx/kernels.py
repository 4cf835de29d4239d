"""The form of kernels: functions that the threads of a grid run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from msgspec.structs import replace

from gossamer_ir.nodes import For, Function, Module
from gossamer_ir.traversal.node_index import nodes_of_type
from gossamer_llvm.emitter.function_emitter import FunctionEmitter, FunctionForm
from gossamer_llvm.emitter.ir_builder import HOT
from gossamer_llvm.targets.nvptx.aligned_vectors import aligned_vectors, emit_body_with_vectors
from gossamer_llvm.targets.nvptx.kernel_state import KernelState
from gossamer_llvm.targets.nvptx.shared_memory import define_shared, shared_memory_of
from gossamer_llvm.targets.nvptx.threads import block_shape
from gossamer_llvm.targets.nvptx.warp_instructions import (
    WarpgroupProduct,
    WarpProduct,
    warp_instruction_of,
)


def kernel_forms(flat: Module) -> Mapping[str, FunctionForm]:
    """Return the form of each function of a module for a device: all are kernels."""
    return {function.name: _function_form(function) for function in flat.functions}


def _function_form(function: Function) -> FunctionForm:
    block = block_shape(function)
    attributes = f'{HOT} "nvvm.maxntid"="{",".join(map(str, block))}"'
    instructions = set(map(type, map(warp_instruction_of, nodes_of_type(function, For))))
    if instructions & {WarpProduct, WarpgroupProduct}:
        # By default, ptxas limits registers so that several blocks fit, and then spills operands of matrix
        # instructions: 96 for one warp, of which int8 on sm_90 needs 104.
        attributes += ' "nvvm.minctasm"="1"'
    vectors = aligned_vectors(function)
    form = FunctionForm(
        convention="ptx_kernel",
        attributes=attributes,
        begin=partial(
            _begin,
            block=block,
            shared_bytes=shared_memory_of(function).size,
            has_warpgroups=WarpgroupProduct in instructions,
        ),
        end=define_shared,
    )
    if vectors is None:
        return form
    return replace(form, body=partial(emit_body_with_vectors, vectors=vectors))


def _begin(
    emitter: FunctionEmitter,
    *,
    block: tuple[int, int, int],
    shared_bytes: int,
    has_warpgroups: bool,
) -> None:
    kernel = emitter.state(KernelState)
    kernel.has_warpgroups = has_warpgroups
    kernel.block, kernel.total_shared_bytes = block, shared_bytes
