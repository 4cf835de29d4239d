"""Steps that give a block a buffer of its own."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_ir.nodes import Block
from tests.generated.drawers.scene import Drawer, Drawn, Scene, loaded, stored

SCOPES = ("local", "global")
MOST_CACHES = 4


def cache_read(scene: Scene) -> Drawn:
    site = scene.choose([site for site in scene.blocks if loaded(site.node)])
    return site and _cached(scene, site.node, sorted(loaded(site.node)))


def cache_write(scene: Scene) -> Drawn:
    site = scene.choose([site for site in scene.blocks if stored(site.node)])
    return site and _cached(scene, site.node, stored(site.node))


def reindex_cache_read(scene: Scene) -> Drawn:
    return _reindexed(scene, cache_read(scene))


def reindex_cache_write(scene: Scene) -> Drawn:
    return _reindexed(scene, cache_write(scene))


def _cached(scene: Scene, block: Block, buffers: Sequence[str]) -> Drawn:
    if sum("cache" in step.op for step in scene.trace) >= MOST_CACHES:
        return None
    buffer, scope = scene.rng.choice(buffers), scene.rng.choice(SCOPES)
    return {"block": block.name, "buffer": buffer, "scope": scope}


def _reindexed(scene: Scene, drawn: Drawn) -> Drawn:
    """The same, sometimes with another order of those iterators that select the element, if they are
    all."""
    if drawn is None or scene.chance(0.6):
        return drawn
    block = next(site.node for site in scene.blocks if site.node.name == drawn["block"])
    names = [found.var for found in block.iters if found.kind == "S" or scene.chance(0.5)]
    return drawn | {"order": tuple(scene.rng.sample(names, len(names)))}


DRAWERS: dict[str, Drawer] = {
    found.__name__: found
    for found in (cache_read, cache_write, reindex_cache_read, reindex_cache_write)
}
