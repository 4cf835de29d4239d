"""Checks of the statements that several stages allow."""

from __future__ import annotations

from collections.abc import Set
from typing import get_args

from gossamer_ir.analysis.accesses.init_nests import EnclosedBlock, loops_outside_init, vars_used
from gossamer_ir.analysis.statements.software_pipelining import is_pipelined
from gossamer_ir.core.annotations import ANNOTATIONS, UNSAFE, keys_on
from gossamer_ir.nodes import (
    Allocate,
    Annotations,
    Block,
    BlockIter,
    For,
    If,
    Let,
    ParallelFor,
    Shuffle,
    Stmt,
    Store,
    ThreadTag,
    While,
)
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.statement_queries import values_bound_in
from gossamer_ir.traversal.walk import stmts
from gossamer_ir.verify.context import NodePlace, VerifyContext
from gossamer_ir.verify.declarations.params_and_buffers import check_buffer
from gossamer_ir.verify.expressions.buffer_accesses import check_region
from gossamer_ir.verify.expressions.check_expr import check_condition, check_expr, check_size
from gossamer_ir.verify.expressions.dtype_queries import parse_dtype
from gossamer_ir.verify.statements.atomics import check_marked_loop
from gossamer_ir.verify.statements.region_coverage import check_regions

THREAD_TAGS: tuple[str, ...] = get_args(ThreadTag)
LOOP_KINDS = frozenset({"serial", "parallel", "vectorized", "unrolled", "thread_binding"})


def check_body(
    context: VerifyContext, body: tuple[Stmt, ...], place: NodePlace, *, field: str = "body"
) -> None:
    """Check statements in order, in a scope of their own."""
    with context.scope():
        for number, stmt in enumerate(body):
            inner = place.down(field, number)
            # The checks are recursive: a module from a file may nest deeper than the stack of Python.
            if context.is_too_deep(inner):
                return
            check = context.stage.stmts.get(type(stmt))
            if check is None:
                context.report_node(stmt, inner)
            else:
                check(context, stmt, inner)


def check_let(context: VerifyContext, node: Let, place: NodePlace) -> None:
    """Check that a variable has the dtype of its value."""
    check_bound_value(context, node, place)
    context.lets[node.var.name] = node.value


def check_bound_value(context: VerifyContext, node: Let | Shuffle, place: NodePlace) -> None:
    """Check that a variable has the dtype of the value of a statement, and define it."""
    dtype = check_expr(context, node.value, place.down("value"))
    if parse_dtype(node.var.dtype) is None:
        context.report(
            "verify.dtype.unknown", f"'{node.var.dtype}' is not a dtype of values.", place
        )
    elif dtype not in (None, node.var.dtype):
        context.report(
            "verify.let.dtype",
            f"'{node.var.name}' of dtype {node.var.dtype} is bound to a value of {dtype}.",
            place,
        )
    # Defined after its value was checked, in which the name is not visible. Also after an error, so that
    # the uses of the variable are not reported in turn.
    context.define(node.var.name, node.var.dtype, place.down("var"))


def check_allocate(context: VerifyContext, node: Allocate, place: NodePlace) -> None:
    """Check that an allocated buffer is not bound to a parameter."""
    inner = place.down("buffer")
    if node.buffer.handle is not None:
        context.report(
            "verify.allocate.handle",
            f"The allocated buffer '{node.buffer.name}' is bound to '{node.buffer.handle}'.",
            inner,
        )
    # The shape first: it cannot use the buffer itself.
    check_buffer(context, node.buffer, inner)
    context.define_buffer(node.buffer, len(node.buffer.shape), inner)


def check_if(context: VerifyContext, node: If, place: NodePlace) -> None:
    """Check that the condition is a scalar bool, and both bodies."""
    check_condition(context, node.condition, place.down("condition"))
    check_body(context, node.then_body, place, field="then_body")
    check_body(context, node.else_body, place, field="else_body")


def check_while(context: VerifyContext, node: While, place: NodePlace) -> None:
    """Check that the condition is a scalar bool, and the body."""
    check_condition(context, node.condition, place.down("condition"))
    check_body(context, node.body, place)


def check_for(context: VerifyContext, node: For, place: NodePlace) -> None:
    """Check a loop: its range is int64, only `thread_binding` loops have a thread, and only `parallel` loops
    have a weight or grain."""
    check_loop_range(context, node, place)
    _check_loop_kind(context, node, place)
    with context.scope():
        define_loop_var(context, node, place)
        # Restored by hand: they describe the enclosing statements, not names that the scope drops.
        outer = context.bound, context.loops
        if node.thread is not None:
            _bind_thread(context, node, place)
        context.loops = (*context.loops, node)
        check_body(context, node.body, place)
        context.bound, context.loops = outer
    check_annotations(context, node.annotations, place, allowed=keys_on("loop"))
    check_marked_loop(context, node, place)
    # Checked at the end of the function, when all accesses of the body have been found valid.
    if is_pipelined(node):
        context.pipelined.append((node, place))


def check_loop_range(context: VerifyContext, node: For | ParallelFor, place: NodePlace) -> None:
    """Check the start, extent and grain of a loop, which are evaluated before it."""
    check_size(context, node.start, place.down("start"))
    check_size(context, node.extent, place.down("extent"))
    if node.grain is not None:
        check_size(context, node.grain, place.down("grain"))


def define_loop_var(context: VerifyContext, node: For | ParallelFor, place: NodePlace) -> None:
    """Define the variable of a loop in the present scope, and check the weight, which depends on it."""
    context.define(node.var, "int64", place)
    if node.weight is not None:
        check_size(context, node.weight, place.down("weight"))


def _bind_thread(context: VerifyContext, node: For, place: NodePlace) -> None:
    """Check that loops bound to the same thread axis do not nest, and that they all have the same extent
    inside the outermost loop that is bound to any thread axis."""
    # A new kernel: loops bound to threads in another one may have other extents.
    if not context.bound:
        context.threads = {}
    if node.thread in context.bound:
        context.report(
            "verify.thread.duplicate",
            f"Loop '{node.var}' is bound to {node.thread}, as is an enclosing loop.",
            place,
        )
    elif context.threads.setdefault(str(node.thread), node.extent) != node.extent:
        context.report(
            "verify.thread.extent",
            f"Loop '{node.var}' has a different extent than another loop bound to {node.thread}.",
            place,
        )
    context.bound = context.bound | {str(node.thread)}


def _check_loop_kind(context: VerifyContext, node: For, place: NodePlace) -> None:
    if node.kind not in LOOP_KINDS:
        context.report("verify.for.kind", f"'{node.kind}' is not a kind of loop.", place)
    elif node.kind not in context.stage.loops:
        context.report(
            "verify.stage.loop",
            f"The loop '{node.var}' is {node.kind}, which is not allowed at the stage "
            f"'{context.stage.name}'.",
            place,
        )
    if (node.kind == "thread_binding") != (node.thread is not None):
        context.report(
            "verify.for.thread",
            f"The {node.kind} loop '{node.var}' has the thread {node.thread}; expected a thread for "
            "thread_binding loops and None for others.",
            place,
        )
    elif node.thread is not None and node.thread not in THREAD_TAGS:
        context.report("verify.thread.tag", f"'{node.thread}' is not a thread axis.", place)
    if node.kind != "parallel" and (node.weight is not None or node.grain is not None):
        context.report(
            "verify.for.weight",
            f"The {node.kind} loop '{node.var}' has a weight or a grain, which only a parallel "
            "loop has.",
            place,
        )


def check_block(context: VerifyContext, node: Block, place: NodePlace) -> None:
    """Check iterators, predicate, init (which cannot use reduction variables), body and regions.

    Accesses are compared with the regions only if the block has no other diagnostic.
    """
    reported = len(context.diagnostics)
    context.define_label(node.name, place)
    check_annotations(context, node.annotations, place, allowed=keys_on("block"))
    with context.scope():
        for number, iterator in enumerate(node.iters):
            _check_block_iter(context, iterator, place.down("iters", number))
        if node.predicate is not None:
            check_condition(context, node.predicate, place.down("predicate"))
        # Before the loops are hidden: whether a variable is set depends on the loops around the block.
        unset = _unset_in_init(context, node) if node.init else set()
        # An inner block sees its own loops only, as its init runs inside of this block.
        outer, context.loops = context.loops, ()
        check_init(context, node.init, place, reductions=unset)
        check_body(context, node.body, place)
        context.loops = outer
        for field in ("reads", "writes"):
            for number, region in enumerate(getattr(node, field) or ()):
                check_region(context, region, place.down(field, number))
        # The analysis of accesses needs valid ones.
        if len(context.diagnostics) == reported:
            check_regions(context, node, place)


def _unset_in_init(context: VerifyContext, node: Block) -> set[str]:
    """Return the variables that have no value where the init of a block runs.

    These are reduction iterators, loops that feed only reduction iterators, and lets that depend on them.
    """
    reductions = {
        iterator.var for iterator in node.iters if iterator.kind == "R"
    } - _selecting_vars(node.init)
    idle = loops_outside_init(EnclosedBlock(node, context.loops, context.lets))
    used = free_vars(*node.init) & context.lets.keys() if idle else ()
    lets = {name for name in used if vars_used((context.lets[name],), context.lets) & idle}
    return reductions | idle | lets


def _selecting_vars(init: tuple[Stmt, ...]) -> set[str]:
    """Return the variables in the indices of an init's stores, also through lets of the init. These may be
    reduction iterators, as in a store to the column of a compressed row, where several points write one
    element."""
    indices = [index for stmt in stmts(init) if isinstance(stmt, Store) for index in stmt.indices]
    return vars_used(indices, values_bound_in(init))


def _check_block_iter(context: VerifyContext, node: BlockIter, place: NodePlace) -> None:
    domain = place.down("domain")
    check_size(context, node.domain.start, domain.down("start"))
    check_size(context, node.domain.extent, domain.down("extent"))
    check_size(context, node.value, place.down("value"))
    if node.kind not in ("S", "R"):
        context.report("verify.block.kind", f"'{node.kind}' is not a kind of iterator.", place)
    context.define(node.var, "int64", place)


def check_init(
    context: VerifyContext, init: tuple[Stmt, ...], place: NodePlace, *, reductions: set[str]
) -> None:
    """Check an init, in which the reduction variables cannot be used."""
    hidden = context.hidden
    # Hidden instead of undefined, so that the error can say why a variable has no value here.
    context.hidden = hidden | reductions
    check_body(context, init, place, field="init")
    context.hidden = hidden


def check_annotations(
    context: VerifyContext, annotations: Annotations, place: NodePlace, *, allowed: Set[str]
) -> None:
    """Check that keys are unique and supported, and that values are strings, integers or bools."""
    keys = [key for key, _ in annotations]
    for number, (key, value) in enumerate(annotations):
        elsewhere = ANNOTATIONS[key].elsewhere if key in ANNOTATIONS else None
        if elsewhere is not None and key not in allowed:
            context.report(
                "verify.annotation.refused",
                f"The annotation '{key}' is not supported here.",
                place.down("annotations", number),
                hint=elsewhere,
            )
        if key == UNSAFE and (not isinstance(value, str) or not value):
            context.report(
                "verify.annotation.unsafe",
                f"The annotation 'unsafe' is {value!r}; expected a text that names what was not proved.",
                place.down("annotations", number),
            )
        if keys.index(key) != number or not isinstance(value, (bool, int, str)):
            context.report(
                "verify.annotation",
                f"The annotation '{key}' is given twice, or is not a bool, an integer or a string.",
                place.down("annotations", number),
            )
