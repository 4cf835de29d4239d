"""Loops that run over the terms of reductions, which may be combined in any order."""

from __future__ import annotations

from typing import Any

from gossamer_ir.analysis.init_nests import reduction_loops, spatial_loops
from gossamer_ir.nodes import Block, Expr, Module
from gossamer_ir.traversal.effects import outer_writes
from gossamer_ir.traversal.walk import free_vars, resolve
from gossamer_schedule.cursor.site import Site, statements
from gossamer_schedule.dependence.access import values_at
from gossamer_schedule.errors import refusal, text_of
from gossamer_schedule.reductions.reassociation import combiner_of, reduction_of


def _blocks(site: Site) -> list[Block]:
    return [found for found in statements(site.node.body) if isinstance(found, Block)]


def is_reduction_loop(site: Site) -> bool:
    """Whether the loop at a site feeds a reduction iterator of a block below it."""
    values = values_at(site)
    return any(site.node.var in reduction_loops(block, values) for block in _blocks(site))


def is_adding_up(site: Site) -> bool:
    """Whether all that the loop at a site does is to combine with elements that it does not select,
    which has one meaning whatever the kinds of the iterators are."""
    return bool(site.node.body) and all(
        isinstance(found, Block) and not found.init and _is_lane_reduction(found, site)
        for found in site.node.body
    )


def require_reducers(site: Site, module: Module, *, primitive: str) -> None:
    """Refuses the loop at a site unless its body is blocks that are reductions over it, none of which uses
    what another one adds up: that is complete only after the loop."""
    for found in site.node.body:
        if isinstance(found, Block):
            _require_one_element(found, site, module, primitive=primitive)
        if not isinstance(found, Block) or not _is_lane_reduction(found, site):
            name = f"Block '{found.name}'" if isinstance(found, Block) else "A statement"
            raise refusal(
                f"{primitive}.not_reducer",
                f"{name} under reduction loop '{site.node.var}' is no reduction over it.",
                hint="Expected a block with the one statement X[...] = X[...] op value, where op "
                "is +, *, min, max, and, or.",
                place=site.place(module),
            )
    _require_apart(site, module, primitive=primitive)


def _require_apart(site: Site, module: Module, *, primitive: str) -> None:
    for buffer in sorted(outer_writes(site.node.body)):
        if combiner_of(site.node.body, buffer) is None:
            raise refusal(
                f"{primitive}.not_reducer",
                f"Reduction loop '{site.node.var}' does more with '{buffer}' than to combine its elements "
                "by one reducer.",
                hint="Expected blocks with the one statement X[...] = X[...] op value, where op is +, *, "
                "min, max, and, or, and no block uses what another one writes.",
                place=site.place(module),
            )


def _require_one_element(block: Block, site: Site, module: Module, *, primitive: str) -> None:
    """Lanes that may combine with the same element or with different ones are neither added up first,
    nor stored at once."""
    varying = _varying(block, site)
    if reduction_of(block) is not None and varying:
        raise refusal(
            f"{primitive}.not_proved",
            f"It is not proved that block '{block.name}' combines with one element in all iterations "
            f"of loop '{site.node.var}'.",
            needs=" and ".join(
                f"{text_of(at)} is the same for every {site.node.var}" for at in varying
            ),
            place=site.place(module),
        )


def _is_lane_reduction(block: Block, site: Site) -> bool:
    is_spatial = site.node.var in spatial_loops(block, values_at(site))
    is_one = reduction_of(block) is not None and not _varying(block, site)
    return is_one and not (is_spatial and block.init)


def _varying(block: Block, site: Site) -> list[Expr]:
    """The indices of what a reduction combines with that change along the loop, in terms of loops."""
    found = reduction_of(block)
    values: dict[str, Any] = {item.var: item.value for item in block.iters} | values_at(site)
    indices = [] if found is None else [resolve(at, values) for at in found.store.indices]
    return [at for at in indices if site.node.var in free_vars(at)]
