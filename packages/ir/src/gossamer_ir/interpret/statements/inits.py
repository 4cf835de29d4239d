"""Hoists the init of a block to the point where it runs.

An init runs once for every output element that the block visits, before any update: just before the
outermost loop that feeds a reduction iterator (one on which the iterator's value depends). The loops
between that point and the block run again for the init, except those that feed only reduction iterators.
Conjuncts of the predicate, and of enclosing conditions, are dropped if they use reduction iterators or
loops that do not run again. If the remaining conjuncts hold, the iterators that the init needs must be in
their domains, as all iterators must be if the whole predicate holds. A reduction iterator that the init
itself uses, as in a store to the column of a compressed row, counts as spatial here.

Points that write the same element initialize it once. For this, a block records the elements that it has
initialized: since the start of the outermost loop that feeds any of its iterators, and separately for
each iteration of the loops inside of that one that feed none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from gossamer_ir.core.conditions import conjuncts
from gossamer_ir.core.integers import wrap_integer
from gossamer_ir.interpret.frame import Exec, Frame, Initialized
from gossamer_ir.interpret.interpreter_errors import InterpreterError
from gossamer_ir.interpret.translator import EnclosingStmt, Translator
from gossamer_ir.nodes import Block, BlockIter, Expr, For, If, Let
from gossamer_ir.traversal.free_vars import free_vars


def hoist_init(node: Block, translator: Translator) -> Exec | None:
    """Add the init to the loop before which it runs; return it if no loop feeds a reduction iterator."""
    feeding = _InitDependences(node, translator.around)
    outermost = _forget_before_loop(node, feeding, translator)
    for depth, enclosing in enumerate(translator.around):
        # The outermost such loop: `around` is ordered from the outside in.
        if isinstance(enclosing.node, For) and enclosing.node.var in feeding.reduction:
            repeats = _repeating_loops(translator, feeding, outermost, depth)
            nest = _nest(
                node, translator.around[depth:], repeats, feeding=feeding, translator=translator
            )
            enclosing.hoisted.append(nest)
            return None
    repeats = _repeating_loops(translator, feeding, outermost, len(translator.around))
    nest = _nest(node, [], repeats, feeding=feeding, translator=translator)
    return nest if outermost is not None else _one_after_other(_forgetting_record(node.name), nest)


def _forget_before_loop(
    node: Block, feeding: _InitDependences, translator: Translator
) -> int | None:
    """Clear the record of initialized elements before the outermost loop that feeds an iterator.

    Returns the index of that loop in `translator.around`, None if there is none.
    """
    for depth, enclosing in enumerate(translator.around):
        if isinstance(enclosing.node, For) and enclosing.node.var in feeding.any:
            enclosing.hoisted.append(_forgetting_record(node.name))
            return depth
    return None


def _forgetting_record(block_name: str) -> Exec:
    def run(frame: Frame) -> None:
        frame.inits[block_name] = {}

    return run


def _one_after_other(first: Exec, second: Exec) -> Exec:
    def run(frame: Frame) -> None:
        first(frame)
        second(frame)

    return run


def _repeating_loops(
    translator: Translator, feeding: _InitDependences, outermost: int | None, depth: int
) -> tuple[str, ...]:
    """Return the loops, between `outermost` and the position of the init, that feed no iterator: each of
    their iterations initializes all elements again."""
    if outermost is None:
        return ()
    loops = [
        enclosing.node.var
        for enclosing in translator.around[outermost:depth]
        if isinstance(enclosing.node, For)
    ]
    whiles = [name for level, name in translator.whiles if outermost < level <= depth]
    return (*(var for var in loops if var not in feeding.any), *whiles)


class _InitDependences:
    """The variables that feed a block's iterators, and those that its init needs.

    `bound` are the iterators that the init needs: spatial ones, and reduction iterators that the init or
    the domain of a needed iterator uses. `reduction` are the variables that feed reduction iterators, `any`
    those that feed any iterator, and `needed` those on which `bound` depends.
    """

    # Other statements: refused around a block with an init.
    def __init__(self, node: Block, around: list[EnclosingStmt]) -> None:
        self._lets = {
            enclosing.node.var.name: enclosing.node.value
            for enclosing in around
            if isinstance(enclosing.node, Let)
        }
        in_init = {name for stmt in node.init for name in free_vars(stmt)}
        self.bound = _selecting_iters(node.iters, in_init)
        self.unbound = {iterator.var for iterator in node.iters} - {
            iterator.var for iterator in self.bound
        }
        self.reduction = self._transitive_vars(
            iterator.value for iterator in node.iters if iterator.kind == "R"
        )
        self.any = self._transitive_vars(iterator.value for iterator in node.iters)
        self.needed = set(self._transitive_vars(iterator.value for iterator in self.bound))
        for enclosing in reversed(around):
            if isinstance(enclosing.node, For) and self.is_bound(enclosing.node.var):
                self.needed |= self._transitive_vars((enclosing.node.start, enclosing.node.extent))

    def is_bound(self, name: str) -> bool:
        """Return whether the loop nest of the init binds this variable of a loop or let."""
        return name in self.needed or name not in self.reduction

    def _transitive_vars(self, exprs: Iterable[Expr]) -> frozenset[str]:
        names: set[str] = set()
        pending = [name for expr in exprs for name in free_vars(expr)]
        while pending:
            name = pending.pop()
            if name not in names:
                names.add(name)
                if name in self._lets:
                    pending.extend(free_vars(self._lets[name]))
        return frozenset(names)


def _selecting_iters(iters: tuple[BlockIter, ...], names: set[str]) -> list[BlockIter]:
    """Return the spatial iterators, those in `names`, and those that the domains of any of these use."""
    selected: list[BlockIter] = []
    wanted = set(names)
    # Backwards, because a domain may use iterators before its own.
    for iterator in reversed(iters):
        if iterator.kind == "S" or iterator.var in wanted:
            selected.insert(0, iterator)
            wanted |= free_vars(iterator.domain)
    return selected


# Other statements: refused around a block with an init.
def _nest(
    node: Block,
    around: list[EnclosingStmt],
    repeats: tuple[str, ...],
    *,
    feeding: _InitDependences,
    translator: Translator,
) -> Exec:
    unbound = set(feeding.unbound)
    kept: list[EnclosingStmt] = []
    for enclosing in around:
        if isinstance(enclosing.node, For) and not feeding.is_bound(enclosing.node.var):
            unbound.add(enclosing.node.var)
        elif isinstance(enclosing.node, Let) and (
            free_vars(enclosing.node.value) & unbound
            or not feeding.is_bound(enclosing.node.var.name)
        ):
            unbound.add(enclosing.node.var.name)
        else:
            kept.append(enclosing)
    run = _init(node, feeding.bound, repeats, unbound=unbound, translator=translator)
    for enclosing in reversed(kept):
        run = _inside_stmt(enclosing, run, unbound=unbound, translator=translator)
    return run


def _init(
    node: Block,
    iters: list[BlockIter],
    repeats: tuple[str, ...],
    *,
    unbound: set[str],
    translator: Translator,
) -> Exec:
    bind = bind_iters(iters, translator)
    # The init is translated as if it stood alone: nothing inside may be hoisted to the loops of the block.
    around, translator.around = translator.around, []
    check = domain_checks(iters, node.name, translator)
    body = _one_after_other(
        check, _init_new_elements(node.name, translator.body(node.init), repeats)
    )
    translator.around = around
    guarded = _with_conditions(
        conjuncts(node.predicate), body, unbound=unbound, translator=translator
    )

    def run(frame: Frame) -> None:
        bind(frame)
        guarded(frame)

    return run


def _init_new_elements(block_name: str, init: Exec, repeats: tuple[str, ...]) -> Exec:
    def run(frame: Frame) -> None:
        now = tuple(int(frame.values[name]) for name in repeats)
        outer = frame.initialized
        # One record per iteration of the loops that repeat the init.
        frame.initialized = frame.inits[block_name].setdefault(now, Initialized())
        init(frame)
        frame.initialized.end()
        frame.initialized = outer

    return run


# Other statements: refused around a block with an init.
def _inside_stmt(
    enclosing: EnclosingStmt, body: Exec, *, unbound: set[str], translator: Translator
) -> Exec:
    match enclosing.node:
        case For():
            return _loop(enclosing.node, body, translator)
        case Let(var=var):
            name, value = var.name, translator.expr(enclosing.node.value)

            def run(frame: Frame) -> None:
                frame.values[name] = value(frame)
                body(frame)

            return run
        case If():
            return _with_conditions(
                enclosing.conditions, body, unbound=unbound, translator=translator
            )


def _loop(node: For, body: Exec, translator: Translator) -> Exec:
    name, start, extent = node.var, translator.expr(node.start), translator.expr(node.extent)

    def run(frame: Frame) -> None:
        first = int(start(frame))
        # Python's integers: the range may go beyond int64, where its values wrap as those of any loop.
        for value in range(first, first + int(extent(frame))):
            frame.values[name] = np.int64(wrap_integer(value))
            body(frame)

    return run


def _with_conditions(
    conditions: Iterable[Expr], body: Exec, *, unbound: set[str], translator: Translator
) -> Exec:
    parts = tuple(translator.expr(part) for part in conditions if not free_vars(part) & unbound)

    def run(frame: Frame) -> None:
        if all(part(frame) for part in parts):
            body(frame)

    return run if parts else body


def bind_iters(iters: Iterable[BlockIter], translator: Translator) -> Exec:
    """Bind block iterators to their values."""
    parts = tuple((iterator.var, translator.expr(iterator.value)) for iterator in iters)

    def run(frame: Frame) -> None:
        for name, value in parts:
            frame.values[name] = value(frame)

    return run


def domain_checks(iters: Iterable[BlockIter], block_name: str, translator: Translator) -> Exec:
    """Raise an error if an iterator of a block is outside of its domain, or if that cannot be evaluated.

    The error names no buffer, also if the domain loads out of bounds: kernels do not evaluate domains.
    """
    parts = tuple(
        (iterator.var, _domain_of(iterator, block_name, translator)) for iterator in iters
    )

    def run(frame: Frame) -> None:
        for name, domain in parts:
            # Python's integers, because the end of a domain may not fit int64.
            value = int(frame.values[name])
            first, end = domain(frame)
            if not first <= value < end:
                raise InterpreterError(
                    f"In block '{block_name}', '{name}' is {value}, outside of its domain "
                    f"[{first}, {end})."
                )

    return run


def _domain_of(
    iterator: BlockIter, block_name: str, translator: Translator
) -> Callable[[Frame], tuple[int, int]]:
    """Return the start and the end of the domain of an iterator as a function of the frame."""
    start, extent = translator.expr(iterator.domain.start), translator.expr(iterator.domain.extent)
    if start in translator.constants and extent in translator.constants:
        first = int(translator.constants[start])
        ends = first, first + int(translator.constants[extent])
        return lambda frame: ends

    def run(frame: Frame) -> tuple[int, int]:
        try:
            first = int(start(frame))
            return first, first + int(extent(frame))
        except InterpreterError as error:
            message = f"The domain of '{iterator.var}' in block '{block_name}' cannot be evaluated: {error}"
            raise InterpreterError(message) from None

    return run
