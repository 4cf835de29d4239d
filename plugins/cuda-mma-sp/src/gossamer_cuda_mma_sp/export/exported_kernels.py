"""The files of an artifact, and the entries of its manifest that a caller needs to launch its kernels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gossamer_backend.plugin_api import NOT_GUARDED, Artifact, ExportParts
from gossamer_cuda_mma_sp.device_code import SCRIPT_NAME, DeviceCode
from gossamer_cuda_mma_sp.export.ptxas import assemble_ptx
from gossamer_cuda_mma_sp.interpreter.program import parse_ptx
from gossamer_cuda_mma_sp.target.gpu import gpu_of
from gossamer_ir.interchange.kernel_abi import KERNEL_SYMBOL, WORKSPACE_FIELDS, workspace_field
from gossamer_ir.nodes import Expr, Function, Launch, Module
from gossamer_ir.script import print_expr, print_module
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.walk import stmts
from gossamer_support.items_by_name import items_by_name

_KERNEL = re.compile(rf"(?<!\w){KERNEL_SYMBOL}")
_WORKSPACE = {
    "name": "workspace",
    "kind": "workspace",
    "dtype": "int64",
    "elements": len(WORKSPACE_FIELDS),
    "initial": NOT_GUARDED,
    "failed_buffer": workspace_field("failed_buffer"),
}
"""The last parameter of each kernel: numbers that are set to the initial value before a call. The element
`failed_buffer` is then an index into `bounds_checked_buffers` if a bounds check failed."""


def exported_kernels(artifact: Artifact, symbol: str) -> ExportParts:
    """Return the PTX of an artifact and its machine code, if `ptxas` is found. The names of kernels begin
    with the symbol instead of `gossamer_kernel`. If the PTX names lines, the script that has them is written,
    too."""
    code = DeviceCode.decode(artifact.code)
    ptx = _KERNEL.sub(symbol, code.ptx)
    architecture = artifact.metadatum("architecture")
    files, missing = {"ptx": (f"{symbol}.ptx", ptx.encode())}, {}
    has_lines = gpu_of(artifact.parsed_target()).has_line_info
    if has_lines:
        files["script"] = (_KERNEL.sub(symbol, SCRIPT_NAME), code.script.encode())
    machine_code = assemble_ptx(ptx, architecture, has_line_info=has_lines)
    if machine_code.cubin is None:
        missing["cubin"] = machine_code.reason or "ptxas wrote nothing"
    else:
        files["cubin"] = (f"{symbol}.cubin", machine_code.cubin)
    return ExportParts(
        files,
        missing,
        {
            "architecture": architecture,
            "ptx_version": artifact.metadatum("ptx"),
            "kernels": _kernels(code, symbol),
            "buffers": _buffers(code.module),
            "entry_script": print_module(code.module).rstrip(),
        },
    )


def _kernels(code: DeviceCode, symbol: str) -> list[dict[str, Any]]:
    """Return each kernel with its launches, in the order of the program."""
    functions = items_by_name(code.module.functions)
    programs = parse_ptx(code.ptx)
    launches = [
        stmt for stmt in stmts(functions[code.module.entry].body) if isinstance(stmt, Launch)
    ]
    return [
        {
            "function": name,
            "symbol": _KERNEL.sub(symbol, kernel_symbol),
            "shared_bytes": programs[kernel_symbol].shared_bytes,
            "dynamic_shared_bytes": programs[kernel_symbol].dynamic_bytes,
            "parameters": [*_parameters(functions[name]), _WORKSPACE],
            "launches": [_launch(launch) for launch in launches if launch.function == name],
        }
        for name, kernel_symbol in code.symbols.items()
    ]


def _parameters(function: Function) -> list[dict[str, Any]]:
    """Return the parameters of a kernel. Integers and bools of any width are passed in 64 bits."""
    buffers = {buffer.handle: buffer for buffer in function.buffers if buffer.handle is not None}
    return [
        {"name": param.name, "kind": "array", "dtype": buffers[param.name].dtype}
        if param.dtype == "handle"
        else {"name": param.name, "kind": "scalar", "dtype": param.dtype}
        for param in function.params
    ]


def _launch(launch: Launch) -> dict[str, Any]:
    extents: Mapping[str, Expr] = {
        thread_axis.tag: thread_axis.extent for thread_axis in launch.threads
    }
    return {
        "arguments": [print_expr(arg) for arg in launch.args],
        "grid": _shape(extents, "blockIdx"),
        "block": _shape(extents, "threadIdx"),
    }


def _shape(extents: Mapping[str, Expr], kind: str) -> list[str]:
    tags = (f"{kind}.{axis}" for axis in "xyz")
    return [print_expr(extents[tag]) if tag in extents else "1" for tag in tags]


def _buffers(module: Module) -> list[dict[str, Any]]:
    """Return the buffers in global memory that a call needs, which are set to zero before it."""
    entry = items_by_name(module.functions)[module.entry]
    return [
        {
            "name": buffer.name,
            "dtype": buffer.dtype,
            "shape": [print_expr(size) for size in buffer.shape],
        }
        for buffer in allocations(stmts(entry.body))
    ]
