"""Where the init of a block runs.

It runs once for every output element the block visits, before any update: just before the outermost
loop that feeds a reduction iterator. Loops from there to the block are run again for the init,
unless they feed reduction iterators only; parts of the predicate (and of conditions around) that
mention reduction iterators, or loops that are not run again, are dropped. Where the rest of the predicate
holds, the iterators of the init must be in their domains, as those of the body where all of it holds.
A reduction iterator that the init itself mentions (as in a store to the column of a compressed row)
counts as spatial here.

Points that meet in one element initialise it once: a block keeps the elements that it has initialised
from the outermost loop that feeds any of its iterators on. A loop inside of that one that feeds none
of them starts anew in each of its iterations, as that outermost loop does.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gossamer_ir.core.build import conjuncts
from gossamer_ir.interpret.errors import InterpreterError
from gossamer_ir.interpret.frame import Exec, Frame, Initialised
from gossamer_ir.interpret.scope import Entry, Scope
from gossamer_ir.nodes import Block, BlockIter, Expr, For, If, Let, Unary
from gossamer_ir.traversal.walk import free_vars


def place_init(node: Block, scope: Scope) -> Exec | None:
    """Leaves the init with a loop around; returns it where no loop feeds a reduction iterator."""
    feeding = _Feeding(node, scope.around)
    outermost = _forgets(node, feeding, scope)
    for depth, entry in enumerate(scope.around):
        if isinstance(entry.node, For) and entry.node.var in feeding.reduction:
            repeats = _repeats(scope, feeding, outermost, depth)
            nest = _nest(node, scope.around[depth:], repeats, feeding=feeding, scope=scope)
            entry.hoisted.append(nest)
            return None
    repeats = _repeats(scope, feeding, outermost, len(scope.around))
    nest = _nest(node, [], repeats, feeding=feeding, scope=scope)
    return nest if outermost is not None else _both(_forgetting(node.name), nest)


def _forgets(node: Block, feeding: _Feeding, scope: Scope) -> int | None:
    """The place of the outermost loop that feeds an iterator, before which the block forgets what it has
    initialised."""
    for depth, entry in enumerate(scope.around):
        if isinstance(entry.node, For) and entry.node.var in feeding.any:
            entry.hoisted.append(_forgetting(node.name))
            return depth
    return None


def _forgetting(block: str) -> Exec:
    def run(frame: Frame) -> None:
        frame.inits[block] = {}

    return run


def _both(first: Exec, second: Exec) -> Exec:
    def run(frame: Frame) -> None:
        first(frame)
        second(frame)

    return run


def _repeats(scope: Scope, feeding: _Feeding, outermost: int | None, depth: int) -> tuple[str, ...]:
    """The loops from the outermost one that feeds an iterator down to where the init runs that feed
    none: in each of their iterations elements are initialised."""
    if outermost is None:
        return ()
    loops = [
        entry.node.var for entry in scope.around[outermost:depth] if isinstance(entry.node, For)
    ]
    whiles = [name for place, name in scope.whiles if outermost < place <= depth]
    return (*(var for var in loops if var not in feeding.any), *whiles)


class _Feeding:
    """What feeds a block's reduction iterators, and what its init needs: the spatial iterators, and
    those reduction iterators that it, or the domain of such an iterator, mentions."""

    def __init__(self, node: Block, around: list[Entry]) -> None:
        self._lets = {
            entry.node.var.name: entry.node.value for entry in around if isinstance(entry.node, Let)
        }
        in_init = {name for stmt in node.init for name in free_vars(stmt)}
        self.bound = _selecting(node.iters, in_init)
        self.unbound = {it.var for it in node.iters} - {it.var for it in self.bound}
        self.reduction = self._of(it.value for it in node.iters if it.kind == "R")
        self.any = self._of(it.value for it in node.iters)
        self.needed = set(self._of(it.value for it in self.bound))
        for entry in reversed(around):
            if isinstance(entry.node, For) and self.is_bound(entry.node.var):
                self.needed |= self._of((entry.node.start, entry.node.extent))

    def is_bound(self, name: str) -> bool:
        """Whether the init nest binds a loop's or a let's variable."""
        return name in self.needed or name not in self.reduction

    def _of(self, exprs: Iterable[Expr]) -> frozenset[str]:
        found: set[str] = set()
        names = [name for expr in exprs for name in free_vars(expr)]
        while names:
            name = names.pop()
            if name not in found:
                found.add(name)
                if name in self._lets:
                    names.extend(free_vars(self._lets[name]))
        return frozenset(found)


def _selecting(iters: tuple[BlockIter, ...], names: set[str]) -> list[BlockIter]:
    """The spatial iterators, those named, and those that the domains of these mention."""
    found: list[BlockIter] = []
    wanted = set(names)
    for item in reversed(iters):
        if item.kind == "S" or item.var in wanted:
            found.insert(0, item)
            wanted |= free_vars(item.domain)
    return found


def _nest(
    node: Block,
    around: list[Entry],
    repeats: tuple[str, ...],
    *,
    feeding: _Feeding,
    scope: Scope,
) -> Exec:
    unbound = set(feeding.unbound)
    kept: list[Entry] = []
    for entry in around:
        if isinstance(entry.node, For) and not feeding.is_bound(entry.node.var):
            unbound.add(entry.node.var)
        elif isinstance(entry.node, Let) and (
            free_vars(entry.node.value) & unbound or not feeding.is_bound(entry.node.var.name)
        ):
            unbound.add(entry.node.var.name)
        else:
            kept.append(entry)
    run = _init(node, feeding.bound, repeats, unbound=unbound, scope=scope)
    for entry in reversed(kept):
        run = _around(entry, run, unbound=unbound, scope=scope)
    return run


def _init(
    node: Block,
    iters: list[BlockIter],
    repeats: tuple[str, ...],
    *,
    unbound: set[str],
    scope: Scope,
) -> Exec:
    bind = bind_iters(iters, scope)
    around, scope.around = scope.around, []
    check = check_domains(iters, node.name, scope)
    body = _both(check, _of_new_elements(node.name, scope.body(node.init), repeats))
    scope.around = around
    guarded = _when(conjuncts(node.predicate), body, unbound=unbound, scope=scope)

    def run(frame: Frame) -> None:
        bind(frame)
        guarded(frame)

    return run


def _of_new_elements(block: str, init: Exec, repeats: tuple[str, ...]) -> Exec:
    def run(frame: Frame) -> None:
        now = tuple(int(frame.values[name]) for name in repeats)
        outer = frame.initialised
        frame.initialised = frame.inits[block].setdefault(now, Initialised())
        init(frame)
        frame.initialised.end()
        frame.initialised = outer

    return run


def _around(entry: Entry, body: Exec, *, unbound: set[str], scope: Scope) -> Exec:
    match entry.node:
        case For():
            return _loop(entry.node, body, scope)
        case Let(var=var):
            name, value = var.name, scope.expr(entry.node.value)

            def run(frame: Frame) -> None:
                frame.values[name] = value(frame)
                body(frame)

            return run
        case If(condition=condition):
            parts = [Unary("not", condition)] if entry.is_else else conjuncts(condition)
            return _when(parts, body, unbound=unbound, scope=scope)


def _loop(node: For, body: Exec, scope: Scope) -> Exec:
    name, start, extent = node.var, scope.expr(node.start), scope.expr(node.extent)

    def run(frame: Frame) -> None:
        first = int(start(frame))
        for value in range(first, first + int(extent(frame))):
            frame.values[name] = np.int64(value)
            body(frame)

    return run


def _when(conditions: Iterable[Expr], body: Exec, *, unbound: set[str], scope: Scope) -> Exec:
    parts = tuple(scope.expr(part) for part in conditions if not free_vars(part) & unbound)

    def run(frame: Frame) -> None:
        if all(part(frame) for part in parts):
            body(frame)

    return run if parts else body


def bind_iters(iters: Iterable[BlockIter], scope: Scope) -> Exec:
    """Gives block variables the values bound to them."""
    parts = tuple((found.var, scope.expr(found.value)) for found in iters)

    def run(frame: Frame) -> None:
        for name, value in parts:
            frame.values[name] = value(frame)

    return run


def check_domains(iters: Iterable[BlockIter], block: str, scope: Scope) -> Exec:
    """Stops the program where a variable of a block is outside its domain."""
    parts = tuple(
        (found.var, scope.expr(found.domain.start), scope.expr(found.domain.extent))
        for found in iters
    )

    def run(frame: Frame) -> None:
        for name, start, extent in parts:
            # As Python's integers: the end of a domain may be beyond the largest of the machine.
            value, first, count = (
                int(x) for x in (frame.values[name], start(frame), extent(frame))
            )
            if not first <= value < first + count:
                raise InterpreterError(
                    f"In block '{block}', {name} = {value} is outside its domain "
                    f"[{first}, {first + count})."
                )

    return run
