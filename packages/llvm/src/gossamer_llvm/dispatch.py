"""The table of the functions that emit each type of node, on all targets.

It has all types of nodes. Those that earlier passes replace are refused with a code of their own. A target
with instructions of its own for some of them has a `TargetLowering`.
"""

from __future__ import annotations

import re
from typing import NoReturn

from gossamer_ir import nodes
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Node
from gossamer_llvm.control import control_flow, launches, threads
from gossamer_llvm.emitter.function_emitter import EmitExpr, EmitStmt, FunctionEmitter
from gossamer_llvm.memory import allocate, atomic_updates, loads_and_stores
from gossamer_llvm.parallel import parallel_for
from gossamer_llvm.values import operations, scalars_and_vectors, transposes


def _raise_unsupported(emitter: FunctionEmitter, node: Node) -> NoReturn:
    name = type(node).__name__
    code = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    raise UnsupportedError(
        f"llvm.{code}",
        f"'{name}' cannot be lowered to LLVM.",
        hint="Lower the module to the flat stage first.",
    )


EXPR_EMITTERS: dict[type[nodes.Node], EmitExpr] = {
    nodes.Const: scalars_and_vectors.emit_const,
    nodes.Var: scalars_and_vectors.emit_var,
    nodes.Unary: operations.emit_unary,
    nodes.Binary: operations.emit_binary,
    nodes.Compare: operations.emit_compare,
    nodes.Cast: operations.emit_cast,
    nodes.Reinterpret: operations.emit_reinterpret,
    nodes.Select: scalars_and_vectors.emit_select,
    nodes.IfThenElse: scalars_and_vectors.emit_if_then_else,
    nodes.Call: operations.emit_call,
    nodes.Load: loads_and_stores.emit_load,
    nodes.Search: _raise_unsupported,
    nodes.VScale: scalars_and_vectors.emit_vscale,
    nodes.Ramp: scalars_and_vectors.emit_ramp,
    nodes.Broadcast: scalars_and_vectors.emit_broadcast,
    nodes.LaneReduce: scalars_and_vectors.emit_lane_reduce,
    nodes.TransposeReduce: transposes.emit_transpose_reduce,
}

STMT_EMITTERS: dict[type[nodes.Node], EmitStmt] = {
    nodes.Store: loads_and_stores.emit_store,
    nodes.Let: control_flow.emit_let,
    nodes.Allocate: allocate.emit_allocate,
    nodes.If: control_flow.emit_if,
    nodes.While: control_flow.emit_while,
    nodes.For: control_flow.emit_for,
    nodes.Combine: _raise_unsupported,
    nodes.Atomic: atomic_updates.emit_atomic,
    nodes.Block: _raise_unsupported,
    nodes.Iteration: _raise_unsupported,
    nodes.Prefetch: loads_and_stores.emit_prefetch,
    nodes.Guard: control_flow.emit_guard,
    nodes.Barrier: threads.refuse_host_barrier,
    nodes.Shuffle: threads.refuse_host_shuffle,
    nodes.AsyncCopy: threads.emit_host_copy,
    nodes.CommitGroup: threads.emit_host_group,
    nodes.WaitGroup: threads.emit_host_group,
    nodes.ParallelFor: parallel_for.emit_parallel_for,
    nodes.Launch: launches.emit_launch,
}
