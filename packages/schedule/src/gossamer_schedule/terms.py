"""Loops that run over the terms of reductions, which may be combined in any order."""

from __future__ import annotations

from typing import Any

from gossamer_ir.nodes import Block, Module
from gossamer_ir.touches import reduction_loops, spatial_loops
from gossamer_ir.walk import free_vars, resolve
from gossamer_schedule.accesses import values_at
from gossamer_schedule.reassociation import reduction_of
from gossamer_schedule.refusals import refusal
from gossamer_schedule.sites import Site, statements


def _blocks(site: Site) -> list[Block]:
    return [found for found in statements(site.node.body) if isinstance(found, Block)]


def is_reduction_loop(site: Site) -> bool:
    """Whether the loop at a site feeds a reduction iterator of a block below it."""
    values = values_at(site)
    return any(site.node.var in reduction_loops(block, values) for block in _blocks(site))


def require_reducers(site: Site, module: Module, *, primitive: str) -> None:
    """Refuses the loop at a site unless its body is blocks that are reductions over it."""
    for found in site.node.body:
        if not isinstance(found, Block) or not _is_lane_reduction(found, site):
            name = f"Block '{found.name}'" if isinstance(found, Block) else "A statement"
            raise refusal(
                f"{primitive}.not_reducer",
                f"{name} under reduction loop '{site.node.var}' is no reduction over it.",
                hint="Expected a block with the one statement X[...] = X[...] op value, where op "
                "is +, *, min, max, and, or.",
                place=site.place(module),
            )


def _is_lane_reduction(block: Block, site: Site) -> bool:
    found = reduction_of(block)
    values: dict[str, Any] = {item.var: item.value for item in block.iters} | values_at(site)
    return (
        found is not None
        and site.node.var not in spatial_loops(block, values_at(site))
        and all(site.node.var not in free_vars(resolve(at, values)) for at in found.store.indices)
    )
