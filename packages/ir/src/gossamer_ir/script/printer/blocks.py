"""Writes the head of a block: iterators, predicate, regions."""

from __future__ import annotations

from gossamer_ir.core.build import ZERO
from gossamer_ir.nodes import Block, BlockIter, Region, Var
from gossamer_ir.script.parser.state.range_stops import stop_of
from gossamer_ir.script.parser.statements.blocks import remapped_domain
from gossamer_ir.script.printer.context import Printer
from gossamer_ir.script.printer.expressions import write_expr, write_index
from gossamer_ir.script.printer.ranges import write_bounds, write_region


def write_block_head(p: Printer, node: Block) -> None:
    """Write iterators, `T.where`, `T.reads` and `T.writes`.

    Consecutive iterators that are equal to their loops are written as one `T.axis.remap`.
    """
    number = 0
    while number < len(node.iters):
        run = _remap_length(p, node.iters, number)
        if run >= 2:
            _write_remap(p, node.iters, number, number + run)
            number += run
        else:
            _write_iterator(p, node.iters[number], number)
            number += 1
    if node.predicate is not None:
        p.w.put("T.where(")
        write_expr(p.w, node.predicate, "predicate", expected="bool")
        p.w.end_line(")")
    for name in ("reads", "writes"):
        regions = getattr(node, name)
        if regions is not None:
            _write_regions(p, name, regions)


def _remap_length(p: Printer, iters: tuple[BlockIter, ...], first: int) -> int:
    """Return the number of iterators from `first` on that one `T.axis.remap` reproduces exactly."""
    count = 0
    while first + count < len(iters):
        iterator = iters[first + count]
        loop = p.range_of(iterator.value.name) if isinstance(iterator.value, Var) else None
        before = list(iters[: first + count])
        if loop is None or remapped_domain(loop, before) != iterator.domain:
            break
        count += 1
    return count


def _write_remap(p: Printer, iters: tuple[BlockIter, ...], first: int, last: int) -> None:
    w = p.w
    for _, number in w.separate_by_commas(range(first, last)):
        with w.at("iters", number):
            w.put(iters[number].var)
    kinds = "".join(iterator.kind for iterator in iters[first:last])
    w.put(f' = T.axis.remap("{kinds}", [')
    for _, number in w.separate_by_commas(range(first, last)):
        with w.inside("iters", number):
            write_index(w, iters[number].value, "value")
    w.end_line("])")


def _write_iterator(p: Printer, iterator: BlockIter, number: int) -> None:
    w = p.w
    with w.at("iters", number):
        w.put(f"{iterator.var} = T.axis.{'spatial' if iterator.kind == 'S' else 'reduce'}(")
        is_pair = iterator.domain.start != ZERO and stop_of(iterator.domain) is not None
        w.put("(" if is_pair else "")
        with w.inside("domain"):
            write_bounds(w, iterator.domain.start, iterator.domain.extent)
        w.put(")" if is_pair else "")
        w.put(", ")
        write_index(w, iterator.value, "value")
        w.put(")")
    w.end_line()


def _write_regions(p: Printer, name: str, regions: tuple[Region, ...]) -> None:
    p.w.put(f"T.{name}(")
    for number, region in p.w.separate_by_commas(regions):
        with p.w.at(name, number):
            write_region(p.w, region)
    p.w.end_line(")")
