"""Extracts the inspector of a kernel: its searches, as a kernel that runs once for given index arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from gossamer_ir.analysis.statements.reductions import identity
from gossamer_ir.arith.simplify import simplify
from gossamer_ir.core.build import ZERO, index_var
from gossamer_ir.core.constants import constant
from gossamer_ir.nodes import (
    Block,
    BlockIter,
    Cast,
    Compare,
    Expr,
    For,
    Guard,
    If,
    Let,
    Module,
    Range,
    Stmt,
    Store,
    Var,
)
from gossamer_ir.traversal.names import Namer, namer_of
from gossamer_ir.traversal.rename import with_names
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.substitute import substitute
from gossamer_lower.inspector.remove_unused_args import remove_unused_args
from gossamer_lower.lowering_pass import lowering_pass

if TYPE_CHECKING:
    from gossamer_lower.inspector.results.search_results import ExtractedSearch


@lowering_pass(
    takes=("position", "loop"),
    pipeline=None,
    checks_stage=False,
    before={"lower_blocks": "the blocks mark what an inspector computes"},
)
def extract_inspector(module: Module, *, dtype: str = "int64") -> Module:
    """Extract the searches in index arrays into a kernel that writes their results to arrays.

    `use_inspector_results` is the kernel that reads them (the executor). The arrays are new parameters of
    `dtype`, with one element for each iteration of the loops on which a search depends; an int32 result that
    is out of range stops the kernel. If blocks are marked `preprocess`, the kernel consists of these instead.
    Raises the errors of `extract_searches` and `split_marked`.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> before = program('''
    ... for i in T.serial(n):
    ...     Y[i] = X[T.search("upper", P, begin=1, end=n, value=i) - 1]
    ... ''')
    >>> print(body_text(extract_inspector(before)))
    for i in T.serial(n):
        with T.block("P_found"):
            vi = T.axis.spatial(n, i)
            P_found_data[vi] = T.search("upper", P, begin=1, end=n, value=vi) - 1
    """
    # Imported late: few programs have an inspector.
    from gossamer_lower.inspector.results.marked_blocks import split_marked
    from gossamer_lower.inspector.results.search_results import extract_searches

    parted = split_marked(module)
    if parted is not None:
        named = namer_of(parted.function).fresh(f"{parted.function.name}_preprocess")
        alone = replace(parted.function, name=named, body=parted.marked)
        return remove_unused_args(Module(module.stage, (alone,), named))
    extracted = extract_searches(module, dtype)
    old = extracted.function
    bare = replace(
        old,
        params=(*old.params, *extracted.params()),
        buffers=(*old.buffers, *extracted.buffers()),
        body=(),
        reducers=(),
        annotations=(),
    )
    namer = namer_of(bare)
    made = replace(
        bare,
        name=namer.fresh(f"{old.name}_preprocess"),
        body=tuple(stmt for search in extracted.searches for stmt in _nest(search, namer)),
    )
    return remove_unused_args(Module(module.stage, (made,), made.name))


def _nest(search: ExtractedSearch, namer: Namer) -> tuple[Stmt, ...]:
    """Return the loop nest and conditions around a search. If it does not write all elements of the array,
    a nest before it fills the array with a value that satisfies the facts about the results."""
    loops = [item for item in search.around if isinstance(item, For)]
    names = {loop.var: namer.fresh(loop.var) for loop in loops}
    body: tuple[Stmt, ...] = (_block(search, loops, namer=namer),)
    for item in reversed(search.around):
        body = (_loop(item, body) if isinstance(item, For) else If(item, body),)
    # The loops stay where they are, too, so the copies have other names.
    renamed = rewrite_body(body, lambda node: with_names(node, names))
    is_partial = len(loops) < len(search.around) or search.indices != tuple(
        index_var(loop.var) for loop in loops
    )
    return (*_fill_nest(search, namer), *renamed) if search.facts and is_partial else renamed


def _loop(loop: For, body: tuple[Stmt, ...]) -> For:
    return For(loop.var, loop.start, loop.extent, body)


def _block(search: ExtractedSearch, loops: list[For], *, namer: Namer) -> Block:
    inside: dict[str, Expr] = {}
    iters: list[BlockIter] = []
    for loop in loops:
        # The range of a loop may depend on loops around it, whose iterators stand for them in the block.
        domain = substitute(Range(loop.start, loop.extent), inside)
        var = namer.fresh(f"v{loop.var}")
        iters.append(BlockIter(var, "S", domain, index_var(loop.var)))
        inside[loop.var] = index_var(var)
    value = substitute(search.value, inside)
    indices = tuple(substitute(index, inside) for index in search.indices)
    body = _result_stores(search, indices, value, namer=namer)
    return Block(search.handle, tuple(iters), body)


def _result_stores(
    search: ExtractedSearch, indices: tuple[Expr, ...], value: Expr, *, namer: Namer
) -> tuple[Stmt, ...]:
    name, dtype = search.buffer.name, search.buffer.dtype
    if dtype == "int64":
        return (Store(name, indices, value),)
    result = Var(namer.fresh("found"), "int64")
    # A larger result would wrap around, and the executor would access another element.
    high = constant(int(identity("min", dtype).text), "int64")
    is_narrow = Compare("le", result, high)
    return (Let(result, value), Guard(is_narrow, name), Store(name, indices, Cast(dtype, result)))


def _fill_nest(search: ExtractedSearch, namer: Namer) -> tuple[Stmt, ...]:
    low = search.facts[0].low
    names = [namer.fresh("i") for _ in search.buffer.shape]
    indices = tuple(index_var(name) for name in names)
    value = simplify(low if search.buffer.dtype == "int64" else Cast(search.buffer.dtype, low))
    body: Stmt = Store(search.buffer.name, indices, value)
    for name, extent in reversed(list(zip(names, search.buffer.shape, strict=True))):
        body = For(name, ZERO, extent, (body,))
    return (body,)
