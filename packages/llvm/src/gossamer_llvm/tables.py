"""Which function emits which node. Every kind is here; those refused are refused by their name."""

from __future__ import annotations

import re
from typing import Any, NoReturn

from gossamer_ir import nodes
from gossamer_ir.errors import UnsupportedError
from gossamer_llvm import (
    allocate,
    arithmetic,
    atomics,
    calls,
    control,
    leaves,
    memory,
    parallel,
    transposes,
)
from gossamer_llvm.frame import EmitExpr, EmitStmt, Frame


def _refuse(frame: Frame, node: Any) -> NoReturn:
    name = type(node).__name__
    code = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    raise UnsupportedError(
        f"llvm.{code}",
        f"{name} is not lowered to LLVM.",
        hint="Lower the module to the flat stage first.",
    )


EXPRESSIONS: dict[type, EmitExpr] = {
    nodes.Const: leaves.emit_const,
    nodes.Var: leaves.emit_var,
    nodes.Unary: arithmetic.emit_unary,
    nodes.Binary: arithmetic.emit_binary,
    nodes.Compare: arithmetic.emit_compare,
    nodes.Cast: arithmetic.emit_cast,
    nodes.Reinterpret: arithmetic.emit_reinterpret,
    nodes.Select: leaves.emit_select,
    nodes.IfThenElse: leaves.emit_if_then_else,
    nodes.Call: arithmetic.emit_call,
    nodes.Load: memory.emit_load,
    nodes.Search: _refuse,
    nodes.VScale: leaves.emit_vscale,
    nodes.Ramp: leaves.emit_ramp,
    nodes.Broadcast: leaves.emit_broadcast,
    nodes.LaneReduce: leaves.emit_lane_reduce,
    nodes.TransposeReduce: transposes.emit_transpose_reduce,
}

STATEMENTS: dict[type, EmitStmt] = {
    nodes.Store: memory.emit_store,
    nodes.Let: control.emit_let,
    nodes.Allocate: allocate.emit_allocate,
    nodes.If: control.emit_if,
    nodes.While: control.emit_while,
    nodes.For: control.emit_for,
    nodes.Combine: _refuse,
    nodes.Atomic: atomics.emit_atomic,
    nodes.Block: _refuse,
    nodes.Iteration: _refuse,
    nodes.Prefetch: memory.emit_prefetch,
    nodes.Guard: control.emit_guard,
    nodes.ParallelFor: parallel.emit_parallel_for,
    nodes.Launch: calls.emit_launch,
}
