"""Which points of a block may meet in one element that its init writes.

A block initialises each element once. Its init may run in every iteration of a loop only if different
iterations initialise different elements; otherwise it has to run before the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gossamer_ir import build
from gossamer_ir.affine import Affine, affine_of, factors_of, product, scale
from gossamer_ir.contracts import LARGEST_SIZE
from gossamer_ir.injective import is_injective
from gossamer_ir.lasting import lasting_facts
from gossamer_ir.names import Namer
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Block,
    BlockIter,
    Compare,
    DenseFixed,
    Expr,
    For,
    Function,
    Let,
    SparseBuffer,
    Stmt,
    Store,
    Var,
)
from gossamer_ir.program_point import ProgramPoint
from gossamer_ir.prove import Prover
from gossamer_ir.simplify import simplify
from gossamer_ir.touches import Values, selecting
from gossamer_ir.walk import free_vars, resolve, statements, substitute


def may_meet(
    loop: For, block: Block, inner: Sequence[For], *, values: Values, function: Function
) -> bool:
    """Whether different iterations of a loop around a block may initialise the same element.

    `inner` are the loops between the two, `values` what the variables of the block, and of lets around
    it, stand for.

    >>> from gossamer_ir.build import index, index_var
    >>> from gossamer_ir.nodes import BlockIter, Range
    >>> vi, vj = (BlockIter(f"v{x}", "S", Range(index(0), index(8)), index_var(x)) for x in "ij")
    >>> start = Store("Y", (index_var("vi"),), build.zero_of("float32"))
    >>> block = Block("b", (vi, vj), (), init=(start,))
    >>> i, j = (For(x, index(0), index(8), ()) for x in "ij")
    >>> values = {found.var: found.value for found in block.iters}
    >>> function = Function("f", (), ())
    >>> [may_meet(i, block, [j], values=values, function=function),
    ...  may_meet(j, block, [], values=values, function=function)]
    [False, True]
    """
    known = {**values, **_bound_in(block.init)}
    found: dict[str, set[tuple[Expr, ...]]] = {}
    own = {stmt.buffer.name for stmt in statements(block.init) if isinstance(stmt, Allocate)}
    for store in statements(block.init):
        if isinstance(store, Store) and store.buffer not in own:
            indices = tuple(simplify(resolve(at, known)) for at in store.indices)
            found.setdefault(store.buffer, set()).add(indices)
    if any(len(indices) > 1 for indices in found.values()):
        return True
    within = [*inner, *(stmt for stmt in statements(block.init) if isinstance(stmt, For))]
    loops = [_resolved(item, known) for item in (loop, *within)]
    domains = [_domain(item, known) for item in selecting(block)]
    return not all(
        _is_apart(*indices, loops=loops, domains=domains, function=function)
        for indices in found.values()
    )


def _domain(item: BlockIter, values: Values) -> Compare:
    """That the value of an iterator lies before the end of its domain, as it does where the init runs."""
    end = build.add(item.domain.start, item.domain.extent)
    return Compare("lt", resolve(item.value, values), resolve(end, values))


def _bound_in(init: tuple[Stmt, ...]) -> dict[str, Expr]:
    """What lets and block variables in an init stand for."""
    values: dict[str, Expr] = {}
    for stmt in statements(init):
        if isinstance(stmt, Let):
            values[stmt.var.name] = stmt.value
        elif isinstance(stmt, Block):
            values |= {item.var: item.value for item in stmt.iters}
    return values


def _resolved(loop: For, values: Values) -> For:
    return For(loop.var, resolve(loop.start, values), resolve(loop.extent, values), ())


def _is_apart(
    indices: tuple[Expr, ...],
    *,
    loops: Sequence[For],
    domains: Sequence[Compare],
    function: Function,
) -> bool:
    """Whether the elements at some indices in different iterations of the first loop differ, whatever
    iterations of the others they are in."""
    loop, *inner = loops
    if build.integer_value(loop.extent) == 1:
        return True
    others = {item.var for item in inner}
    candidates = [at for at in _with_dividends(indices) if loop.var in free_vars(at)]
    if any(_is_plain(at, loop, others) for at in candidates):
        return True
    facts = lasting_facts(function)
    alone = [at for at in candidates if free_vars(at).isdisjoint(others)]
    return any(is_injective(at, loop, facts) for at in alone) or any(
        _rises(at, loops, domains, function) for at in candidates
    )


def _with_dividends(indices: Iterable[Expr]) -> Iterator[Expr]:
    """Some indices, and what has both its quotient and its remainder by one divisor among them."""
    found = set(indices)
    yield from found
    for at in found:
        match at:
            case Binary(op="floordiv", lhs=dividend, rhs=divisor):
                if Binary("floormod", dividend, divisor) in found:
                    yield dividend


def _is_plain(at: Expr, loop: For, others: set[str]) -> bool:
    """Whether an index is the variable of a loop, counted from what does not change in it."""
    terms = affine_of(at).terms
    variable = build.index_var(loop.var)
    rest = {name for atom in terms if atom != variable for name in free_vars(atom)}
    return abs(terms.get(variable, 0)) == 1 and rest.isdisjoint({*others, loop.var})


def _rises(at: Expr, loops: Sequence[For], domains: Sequence[Compare], function: Function) -> bool:
    """Whether an index in a later iteration of the first loop is proved to be greater, or less, than any
    in an earlier one."""
    if _is_leading_digit(at, loops):
        return True
    point = ProgramPoint(function)
    for name in _sizes(function):
        point.magnitudes.bind(name, build.index(LARGEST_SIZE))
    for item in loops:
        point.bind_loop(item)
    if not point.is_lasting(at):
        return False
    namer = Namer({name for item in loops for name in (item.var, *free_vars(item))} | free_vars(at))
    names = {item.var: build.index_var(namer.fresh(item.var)) for item in loops}
    prover = Prover(lasting_facts(function))
    for item in loops:
        later = substitute(item, names)
        prover.assume_range(item.var, item.start, item.extent)
        prover.assume_range(names[item.var].name, later.start, later.extent)
    for domain in filter(point.is_lasting, domains):
        prover.assume(domain)
        prover.assume(substitute(domain, names))
    first = loops[0].var
    step = Binary("sub", Binary("sub", names[first], build.index_var(first)), build.ONE)
    prover.assume_nonnegative(step)
    apart = Binary("sub", substitute(at, names), at)
    return any(
        prover.proves_nonnegative(Binary("sub", found, build.ONE))
        for found in (apart, Binary("sub", build.ZERO, apart))
    )


def _is_leading_digit(at: Expr, loops: Sequence[For]) -> bool:
    """Whether an index is a number of which the first loop counts a digit and inner ones all that are
    below it, in a system whose bases may be known at run time only."""
    loop, *inner = loops
    names = {item.var for item in loops}
    steps: dict[str, Affine] = {}
    for atom, coefficient in affine_of(at).terms.items():
        factors = factors_of(atom)
        counted = [item.name for item in factors if isinstance(item, Var) and item.name in names]
        if not counted and free_vars(atom).isdisjoint(names):
            continue
        others = (
            [item for item in factors if item != build.index_var(counted[0])] if counted else []
        )
        if len(counted) != 1 or counted[0] in steps or not names.isdisjoint(free_vars(*others)):
            return False
        rest: Expr = build.ONE
        for item in others:
            rest = build.mul(rest, item)
        steps[counted[0]] = scale(affine_of(rest), coefficient)
    extents = {item.var: item.extent for item in inner if item.start == build.ZERO}
    width, leading = Affine({}, 1), steps.pop(loop.var, None)
    while steps:
        name = next((name for name, step in steps.items() if step == width), None)
        following = product(width, affine_of(extents[name])) if name in extents else None
        if name is None or following is None:
            return False
        del steps[name]
        width = following
    return leading == width


def _sizes(function: Function) -> frozenset[str]:
    """The variables that sizes of sparse arrays which are passed consist of."""
    axes = {axis.name: axis for axis in function.axes}
    passed = [
        axes[name]
        for buffer in function.buffers
        if isinstance(buffer, SparseBuffer) and buffer.handle is not None
        for name in buffer.axes
    ]
    return free_vars(*(axis.length for axis in passed if isinstance(axis, DenseFixed)))
