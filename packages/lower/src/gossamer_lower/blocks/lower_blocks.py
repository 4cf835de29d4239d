"""Blocks become plain statements.

Bindings are substituted and predicates become `If`. The init is hoisted before the outermost reduction loop,
so that it also runs if the reduction is empty. It is hoisted before spatial loops, too, whose iterations may
initialize the same element; if that would change its effect, initialized elements are marked instead
(`conflicting_inits`). Loops with one iteration disappear.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.buffer_accesses import is_evaluated
from gossamer_ir.analysis.accesses.init_nests import (
    EnclosedBlock,
    LoopOrCondition,
    conditions_of_init,
    iters_of_init,
    loops_outside_init,
    without_loops,
)
from gossamer_ir.analysis.proofs.program_point import is_invariant
from gossamer_ir.arith.simplify import simplify_unguarded
from gossamer_ir.core.annotations import PIPELINE, without_annotation
from gossamer_ir.core.build import ONE, index_var
from gossamer_ir.core.conditions import conjunction
from gossamer_ir.core.statement_kinds import effects_of
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Block, Buffer, Expr, For, Function, If, Let, Module, Stmt
from gossamer_ir.traversal.buffer_definitions import all_buffers, buffers_allocated
from gossamer_ir.traversal.buffer_uses import buffers_accessed, buffers_read
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.rewrite import map_children
from gossamer_ir.traversal.substitute import resolve, substitute, substitute_body
from gossamer_ir.traversal.walk import outermost
from gossamer_lower.blocks.let_inlining import inline_lets
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.statements.rebuild import map_stmts, with_bodies, with_body

if TYPE_CHECKING:
    from gossamer_lower.blocks.conflicting_inits import InitPosition
    from gossamer_lower.blocks.marked_inits import InitMarks


@lowering_pass(takes=("loop",), removes=("blocks",), is_stable=True)
def lower_blocks(module: Module) -> Module:
    """Turn blocks into plain statements; `init` is hoisted before the reduction loops.

    Raises `UnsupportedError`: `lower.lower_blocks.let_above_block` (a let above a block with `init` reads a
    buffer that the function writes), `lower.lower_blocks.conflicting_inits` (several points of a block may
    initialize an element, and cannot do so once), `lower.lower_blocks.allocated_inside` (an `init` uses a
    buffer that is allocated in a reduction loop).

    >>> from gossamer_testkit.examples import ROW_SUMS
    >>> from gossamer_testkit.show import body_text
    >>> from gossamer_lower import lower_buffers, lower_iterations
    >>> before = lower_buffers(lower_iterations(ROW_SUMS))
    >>> print(body_text(before))
    for i in T.serial(m):
        for j in T.serial(J_indptr[i + 1] - J_indptr[i]):
            with T.block("sums"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    Y_data[vi] = 0.0
                Y_data[vi] = Y_data[vi] + A_data[J_indptr[vi] + vj]
    >>> print(body_text(lower_blocks(before)))
    for i in T.serial(m):
        Y_data[i] = 0.0
        for j in T.serial(J_indptr[i + 1] - J_indptr[i]):
            Y_data[i] = Y_data[i] + A_data[J_indptr[i] + j]
    """
    return map_functions(module, _lower_function)


def _lower_function(function: Function) -> Function:
    # First, because block bindings must show which loops feed them.
    function = with_body(function, inline_lets(function))
    return with_body(function, simplify_unguarded(_BlockLowerer(function).body(function.body)))


class _BlockLowerer:
    """Lowers the blocks of one function."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._namer = namer_of(function)
        self._init_positions: dict[str, InitPosition] = {}
        self._marks: dict[str, InitMarks] = {}
        self._units: dict[str, Expr] = {}

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return map_stmts(body, self._stmt)

    # Other statements: only their bodies are visited.
    def _stmt(self, stmt: Stmt) -> tuple[Stmt, ...]:
        match stmt:
            case Block():
                return self._block(stmt)
            case For():
                return self._loop(stmt)
        return (with_bodies(stmt, self.body),)

    def _loop(self, loop: For) -> tuple[Stmt, ...]:
        marks, loop = self._with_init_marks(loop)
        inits: list[Stmt] = []
        body: tuple[Stmt, ...] = loop.body
        for block in _blocks_below(loop):
            # The nest of the init is copied before the block is lowered,
            # while its bindings are still there.
            if block.init and self._init_position(loop, block).before == loop.var:
                _require_allocated(loop, block)
                inits += self._init_nest(loop, block)
                body = tuple(_without_init(stmt, block.name) for stmt in body)
        # A start that the body changes is read once by the loop,
        # but would be read again after substitution.
        if _is_unit(loop) and is_invariant(loop.start, loop.body, self._function):
            self._units[loop.var] = loop.start
            lets = self._still_read({loop.var: loop.start}, body)
            body = substitute_body(body, {loop.var: loop.start})
            return (*marks, *inits, *lets, *self.body(body))
        return (*marks, *inits, replace(loop, body=self.body(body)))

    def _init_position(self, loop: For, block: Block) -> InitPosition:
        """Return where the init of a block runs; called for the enclosing loops from the outside in."""
        if block.name in self._init_positions:
            return self._init_positions[block.name]
        # Imported late: most schedules decompose reductions, which leaves no init here.
        from gossamer_lower.blocks.conflicting_inits import (
            InitPosition,
            is_fed_by_loop,
            position_of_init,
        )

        # A loop around that does not feed the block repeats it as a whole, with its init.
        if not is_fed_by_loop(loop, block):
            return InitPosition(None)
        position = position_of_init(loop, block, self._function)
        self._init_positions[block.name] = position
        return position

    def _with_init_marks(self, loop: For) -> tuple[tuple[Stmt, ...], For]:
        """Return the statements before a loop that clear marks, and the loop with inits that set them."""
        before: list[Stmt] = []
        for block in _blocks_below(loop):
            if not block.init:
                continue
            position = self._init_position(loop, block)
            names = [name for name, mark in position.marked.items() if mark.loop == loop.var]
            # The arrays of marks are shared by all loops of the block,
            # but cleared before the outermost of each.
            if names and block.name not in self._marks:
                self._marks[block.name] = self._marks_of(loop, block, position)
                before += self._marks[block.name].clear_run_number()
                loop = _with_block_replaced(loop, block, self._marks[block.name].marking(block))
            if names:
                before += self._marks[block.name].clear_marks(names)
        return tuple(before), loop

    def _marks_of(self, loop: For, block: Block, position: InitPosition) -> InitMarks:
        from gossamer_lower.blocks.marked_inits import InitMarks, require_markable

        shapes = {
            buffer.name: tuple(resolve(extent, self._units) for extent in buffer.shape)
            for buffer in all_buffers(self._function)
            if isinstance(buffer, Buffer) and buffer.name in position.marked
        }
        repeating = {name: mark.repeating for name, mark in position.marked.items()}
        around = [item for item in _path_to(loop, block) or () if isinstance(item, For)]
        require_markable(block, shapes, repeating, around, function=self._function)
        return InitMarks(block, shapes, repeating, self._namer)

    def _block(self, block: Block) -> tuple[Stmt, ...]:
        values = {iterator.var: iterator.value for iterator in block.iters}
        body = _under(block.predicate, self.body(block.body))
        # The init stays in the block: it runs in the point that would initialize the element.
        if block.init:
            visited = conjunction(*conditions_of_init(EnclosedBlock(block)))
            body = (*_under(visited, self.body(block.init)), *body)
        return (*self._still_read(values, body), *substitute_body(body, values))

    def _still_read(self, values: Mapping[str, Expr], body: tuple[Stmt, ...]) -> tuple[Let, ...]:
        """Return lets of the values that read memory, unless the first statement of the body evaluates
        them anyway: a read out of bounds must stop the program even if its value is not used."""
        evaluated = effects_of(body[0]).evaluates if body else ()
        return tuple(
            Let(index_var(self._namer.fresh(name)), value)
            for name, value in values.items()
            if buffers_read(value) and not any(is_evaluated(name, part) for part in evaluated)
        )

    # --- init

    def _init_nest(self, loop: For, block: Block) -> tuple[Stmt, ...]:
        """Return a copy of the loop nest from `loop` down to the block, around its init; without the loops
        that only feed the reduction and the conditions on them."""
        path = _path_to(loop, block) or ()
        values = {iterator.var: iterator.value for iterator in iters_of_init(block)}
        loops = [item for item in path if isinstance(item, For)]
        enclosed = EnclosedBlock(block, loops)
        conditions = [substitute(part, values) for part in conditions_of_init(enclosed)]
        init = substitute_body(self.body(block.init), values)
        kept = tuple(without_loops(path, loops_outside_init(enclosed)))
        return self._renamed_nest(kept, _under(conjunction(*conditions), init))

    def _renamed_nest(
        self, path: Sequence[LoopOrCondition], body: tuple[Stmt, ...]
    ) -> tuple[Stmt, ...]:
        loops = [item.var for item in path if isinstance(item, For)]
        names = {var: index_var(self._namer.fresh(f"{var}_init")) for var in loops}
        result = substitute_body(body, names)
        for item in reversed(path):
            if not isinstance(item, For):
                result = _under(substitute(item, names), result)
                continue
            header = substitute(_loop_header(item), names)
            nest = replace(header, var=names[item.var].name, body=result)
            # As above: without the loop, the start is evaluated where the variable was.
            is_unit = _is_unit(nest) and is_invariant(nest.start, result, self._function)
            result = substitute_body(result, {nest.var: nest.start}) if is_unit else (nest,)
        return result


def _loop_header(loop: For) -> For:
    """Return a loop without its body and without the annotation of software pipelining."""
    # Software pipelining needs the stages of the original body.
    return replace(without_annotation(loop, PIPELINE), body=())


def _require_allocated(loop: For, block: Block) -> None:
    """Raise an error if the init uses a buffer that is allocated in the loop before which it runs."""
    inside = buffers_allocated(loop.body) - buffers_allocated(block.init)
    used = inside & buffers_accessed(*block.init)
    if used:
        raise UnsupportedError(
            "lower.lower_blocks.allocated_inside",
            f"The init of the block '{block.name}' runs before the loop '{loop.var}', in which "
            f"'{min(used)}' is allocated.",
            hint="Allocate it outside of the loops that feed the reduction.",
        )


def _blocks_below(loop: For) -> Iterator[Block]:
    """Yield the blocks in the body of a loop that are not inside another block."""
    return outermost(Block, loop.body)


def _path_to(stmt: Stmt, block: Block) -> tuple[LoopOrCondition, ...] | None:
    """Return the loops and conditions from a statement down to the block; None if it is not inside."""
    if stmt is block:
        return ()
    for step, body in _bodies_on_path(stmt):
        for inner in body:
            path = _path_to(inner, block)
            if path is not None:
                return (*step, *path)
    return None


# Other statements: only their bodies are visited.
def _bodies_on_path(stmt: Stmt) -> Iterator[tuple[tuple[LoopOrCondition, ...], tuple[Stmt, ...]]]:
    """Yield the bodies of a statement, each with the loop or condition that it adds to the path."""
    for body in effects_of(stmt).bodies:
        if isinstance(stmt, For):
            yield (stmt,), body.stmts
        elif isinstance(stmt, If) and body.condition is not None:
            yield (body.condition,), body.stmts
        else:
            yield (), body.stmts


def _under(condition: Expr | None, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return the statements under a condition. A condition that reads memory is kept even without
    statements, because the read may stop the program."""
    is_condition_kept = condition is not None and (body or buffers_read(condition))
    return (If(condition, body),) if condition is not None and is_condition_kept else body


def _with_block_replaced(stmt: Stmt, block: Block, by: Block) -> Any:
    """Return the statement with a block inside it replaced."""
    return (
        by
        if stmt is block
        else map_children(stmt, lambda child: _with_block_replaced(child, block, by))
    )


def _without_init(stmt: Stmt, name: str) -> Any:
    if isinstance(stmt, Block):
        return replace(stmt, init=()) if stmt.name == name else stmt
    return map_children(stmt, lambda child: _without_init(child, name))


def _is_unit(loop: For) -> bool:
    return loop.extent == ONE and loop.kind in ("serial", "vectorized", "unrolled")
