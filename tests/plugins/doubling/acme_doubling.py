"""An extension of `generic-cpu`: it doubles numbers by additions, eight at a time."""

from gossamer_backend.plugin_api import Pass, hookimpl
from gossamer_ir.interchange.records import Decision, Intrinsic, ScheduleReport
from gossamer_ir.nodes import Binary, Block, Const, For
from gossamer_ir.traversal.rewrite import rewrite
from gossamer_schedule.plugin_api import TraceBuilder

HEADER = """
@T.prim_func
def double(x: T.handle, y: T.handle) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (8,), "float32")
    Y = T.match_buffer(y, (8,), "float32")
"""
SEMANTICS = """
    for l in T.serial(8):
        with T.block("double"):
            vl = T.axis.spatial(8, l)
            Y[vl] = X[vl] * 2.0
"""
IMPLEMENTATION = """
    for l in T.vectorized(8):
        Y[l] = X[l] * 2.0
"""


@hookimpl
def gossamer_intrinsics():
    return [Intrinsic("double_float32x8", HEADER + SEMANTICS, HEADER + IMPLEMENTATION)]


def double_by_intrinsic(module, machine, stats):
    """Use the intrinsic in programs of the loop stage that are one loop around a block `scale`."""
    match module.functions[0].body:
        case (For(var=loop, body=(Block(name="scale"),)),) if module.stage == "loop":
            trace = TraceBuilder()
            _, inner = trace.split(loop, factors=(None, 8))
            trace.record.tensorize(inner, intrinsic="double_float32x8")
            why = "a vector has 8 lanes"
            decision = Decision("8 elements at a time", why, trace.steps)
            return ScheduleReport("double_by_intrinsic", "a loop over elements", (decision,))
    return None  # the rules of the next plugin, and then gossamer's own, are tried


@hookimpl
def gossamer_schedules():
    return [double_by_intrinsic]


def add_instead(node):
    match node:
        case Binary(op="mul", lhs=lhs, rhs=Const(text="2.0")):
            return Binary("add", lhs, lhs)
    return None  # all other nodes stay as they are


def double_by_addition(module):
    return rewrite(module, add_instead)


@hookimpl
def gossamer_passes():
    return [Pass("double_by_addition", "loop", double_by_addition, at="before vectorize_loops")]
