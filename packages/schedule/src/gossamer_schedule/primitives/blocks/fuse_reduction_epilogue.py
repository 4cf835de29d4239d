"""`fuse_reduction_epilogue`: fold an epilogue into the initial value of a reduction."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.init_nests import reduction_loops
from gossamer_ir.analysis.statements.reductions import Reduction, identity
from gossamer_ir.core.build import index_var
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.dependence.access_forms import buffers_with_aliasing_indices
from gossamer_ir.nodes import Binary, Block, Expr, For, Function, Load, Stmt, Store
from gossamer_ir.traversal.buffer_uses import buffers_accessed, buffers_named, outer_writes
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.substitute import resolve
from gossamer_schedule.cursor.allocations import require_allocated
from gossamer_schedule.cursor.cursor_at import Cursor, function_with_replaced
from gossamer_schedule.cursor.find import find_block, find_buffer
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import quote, schedule_error
from gossamer_schedule.legality.covered_elements import require_covered
from gossamer_schedule.motion.epilogue import Epilogue, are_vars, required_epilogue
from gossamer_schedule.motion.inline import own_nest, without_block, without_buffer
from gossamer_schedule.motion.move_block import nest_beside
from gossamer_schedule.reductions.reassociation import reduction_of, with_reassociation_marks
from gossamer_schedule.safe_accesses.safe_loads import are_loads_safe
from gossamer_schedule.staging.redirected_accesses import with_redirected_accesses


@primitive(stages=LOOP_STAGES)
def fuse_reduction_epilogue(
    root: Cursor[Function], block: str, *, epilogue: str, function: str | None = None
) -> Change:
    """Fold an epilogue, such as the addition of a bias, into the initial value of a reduction.

    Block `epilogue` combines each result of `block` with a value that does not depend on the result, by the
    operation of the reduction. The reduction then starts from that value and reduces into the buffer that
    the epilogue stores to. The epilogue and the buffer between the blocks are removed.

    A difference (`sum - x`) counts as a sum. Sums and products of floats are rounded in another order than
    before, so the block is annotated `reassociates`. An epilogue of another operation, such as a maximum
    after a sum, cannot be folded. The result's name is that of the block.

    Raises `ScheduleError` with a code `schedule.fuse_reduction_epilogue.*`:

    * `.form`: the epilogue is not a single assignment
    * `.reduction`: the block is not one reduction with an init, into an element indexed by spatial iterators
    * `.operation`: the epilogue does not combine the result by the operation of the reduction
    * `.element`: the iterators of the two blocks do not correspond one to one, with the same domains
    * `.predicate`: a block visits elements under a condition
    * `.parameter`: the result is a parameter
    * `.scope`: the epilogue is not after the reduction's nest in the same body
    * `.other_access`: another statement uses the result, or conflicts with the epilogue's accesses
    * `.not_proved`: the loops may not visit all elements, or an element may not exist

    >>> from gossamer_testkit.examples import BIASED
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(BIASED))
    for i in T.serial(m):
        for j in T.serial(n):
            with T.block("sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    S[vi] = 0.0
                S[vi] = S[vi] + A[vi, vj]
    for k in T.serial(m):
        with T.block("bias"):
            vk = T.axis.spatial(m, k)
            Y[vk] = S[vk] + B[vk]
    >>> print(body_text(fuse_reduction_epilogue(BIASED, "sum", epilogue="bias").module))
    for i in T.serial(m):
        for j in T.serial(n):
            with T.block("sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                T.block_attr({"reassociates": True})
                with T.init():
                    Y[vi] = B[vi]
                Y[vi] = Y[vi] + A[vi, vj]
    """
    cursor = find_block(root, block=block)
    epilogue_cursor = find_block(root, block=epilogue)

    reduction, start = _required_reduction(cursor)
    result = reduction.store.buffer
    require_allocated(find_buffer(root, buffer=result), root)
    folded = required_epilogue(cursor, epilogue_cursor, reduction)
    top, epilogue_nest = _required_nests(cursor, epilogue_cursor)
    _require_no_conflict(cursor, epilogue_cursor, (top, epilogue_nest), folded, result=result)
    _require_same_elements(cursor, epilogue_cursor, (top, epilogue_nest), folded, result=result)

    reducing = _starting_from_epilogue(cursor.node, reduction, folded, start=start)
    changed = cursor.replace_with((reducing,))
    without = without_block(find_block(changed, block=epilogue))
    return Change(
        root.with_function(without_buffer(without, result)), (block,), forwards={epilogue: (block,)}
    )


def _required_reduction(cursor: Cursor[Block]) -> tuple[Reduction, Expr]:
    """Return the reduction that a block computes, and its initial value."""
    block = cursor.node
    reduction = reduction_of(block)
    init = block.init[0] if len(block.init) == 1 else None
    spatial = [iterator.var for iterator in block.iters if iterator.kind == "S"]
    if (
        reduction is None
        or not isinstance(init, Store)
        or init.indices != reduction.store.indices
        or init.buffer != reduction.store.buffer
        or init.predicate is not None
        or reduction.store.predicate is not None
        or not are_vars(init.indices, spatial)
    ):
        raise schedule_error(
            "fuse_reduction_epilogue.reduction",
            f"Block '{block.name}' is not a single reduction with an init, into an element indexed by its "
            "spatial iterators.",
            hint="Apply fuse_reduction_epilogue before decompose_reduction.",
        )
    return reduction, init.value


def _required_nests(
    cursor: Cursor[Block], epilogue_cursor: Cursor[Block]
) -> tuple[Cursor[For], Cursor[For]]:
    """Return the cursors at the nests of the reduction and of the epilogue, which follow in one body."""
    epilogue_nest = own_nest(epilogue_cursor)
    top = nest_beside(cursor, epilogue_nest)
    if top is None or not top.precedes(epilogue_nest):
        raise schedule_error(
            "fuse_reduction_epilogue.scope",
            f"Block '{epilogue_cursor.node.name}' is not after the nest of block '{cursor.node.name}', in "
            "the same body.",
        )
    # In a reduction loop, the epilogue runs in each iteration, but the reduction starts only once.
    around = reduction_loops(cursor.node, values_at(cursor)) & {loop.var for loop in top.loops}
    if around:
        raise schedule_error(
            "fuse_reduction_epilogue.scope",
            f"Block '{epilogue_cursor.node.name}' is in loop '{min(around)}', a reduction loop of block "
            f"'{cursor.node.name}', whose results are incomplete there.",
        )
    return top, epilogue_nest


def _require_no_conflict(
    cursor: Cursor[Block],
    epilogue_cursor: Cursor[Block],
    nests: tuple[Cursor[Stmt], Cursor[Stmt]],
    epilogue: Epilogue,
    *,
    result: str,
) -> None:
    """Refuse other uses of the result, and accesses before the epilogue that conflict with it.

    The reduction stores to the epilogue's buffer, and reads its operand, earlier than the epilogue did.
    """
    top, epilogue_nest = nests
    passed = (top.node, *top.siblings_until(epilogue_nest))
    target, reads = epilogue.store.buffer, buffers_accessed(epilogue.operand)
    without = find_block(
        epilogue_cursor.with_function(without_block(epilogue_cursor)), block=cursor.node.name
    )
    conflicts = ({target} & buffers_named(*passed)) | (reads & outer_writes(passed))
    conflicts |= {result} & buffers_named(*function_with_replaced(without, ()).body)
    conflicts |= {result, target} & buffers_with_aliasing_indices(top.function)
    if conflicts:
        raise schedule_error(
            "fuse_reduction_epilogue.other_access",
            f"Block '{cursor.node.name}' cannot take over the reads and stores of block "
            f"'{epilogue_cursor.node.name}', because of other uses of {quote(conflicts)}.",
        )


def _require_same_elements(
    cursor: Cursor[Block],
    epilogue_cursor: Cursor[Block],
    nests: tuple[Cursor[object], Cursor[object]],
    epilogue: Epilogue,
    *,
    result: str,
) -> None:
    """Refuse the blocks unless both visit the same elements, and all elements of the result exist.

    They visit all elements, or those that loops around both of them select.
    """
    top, epilogue_nest = nests
    own_loops = [
        tuple(step.parent for step in block.steps_from(nest))
        for block, nest in ((cursor, top), (epilogue_cursor, epilogue_nest))
    ]
    names = {loop.var for loops in own_loops for loop in loops}
    visited = []
    for pair in epilogue.pairs:
        theirs, ours = (
            resolve(item.value, values_at(block))
            for item, block in zip(pair, (epilogue_cursor, cursor), strict=True)
        )
        if free_vars(theirs, ours) & names or theirs != ours:
            visited.append(pair)
    require_covered(cursor, [ours for _, ours in visited], loops=own_loops[0])
    require_covered(epilogue_cursor, [theirs for theirs, _ in visited], loops=own_loops[1])
    indices = tuple(index_var(ours.var) for _, ours in epilogue.pairs)
    iters = [ours for _, ours in epilogue.pairs]
    if not are_loads_safe(
        cursor.function, (Load(result, indices, "int64"),), iters=iters, conditions=()
    ):
        raise schedule_error(
            "fuse_reduction_epilogue.not_proved",
            f"Cannot prove that each element that block '{cursor.node.name}' computes exists.",
            needs=f"its iterators are within the shape of '{result}'",
        )


# Other operations: their results are marked as rounded differently.
def _starting_from_epilogue(
    block: Block, reduction: Reduction, epilogue: Epilogue, *, start: Expr
) -> Stmt:
    """Return the reduction with the epilogue applied to its initial value, into the epilogue's buffer."""
    store = epilogue.store
    value: Expr = Binary(epilogue.op, start, epilogue.operand)
    if epilogue.op != "sub" and start == identity(reduction.op, dtype_of(start)):
        value = epilogue.operand
    fused = with_redirected_accesses(
        block, reduction.store.buffer, to=store.buffer, at=store.indices
    )
    fused = replace(fused, init=(Store(store.buffer, store.indices, value),))
    if epilogue.op in ("min", "max", "and", "or") or not DType.parse(dtype_of(start)).is_float:
        return fused
    # The operand was combined last and is now combined first, which changes the rounding.
    (annotated,) = with_reassociation_marks((fused,))
    return annotated
