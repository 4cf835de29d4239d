"""Argument generators of the primitives that add caches."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_ir.nodes import Block, Load, Search, Store
from gossamer_ir.traversal.walk import walk
from tests.fuzzing.schedules.argument_generators.scene import (
    ArgumentGenerator,
    Drawn,
    Scene,
    loaded,
    stored,
)

SCOPES = ("local", "global")
MAX_CACHES = 4


def cache_read(scene: Scene) -> Drawn:
    site = scene.choose([site for site in scene.blocks if loaded(site.node)])
    return site and _cached(scene, site.node, sorted(loaded(site.node)))


def cache_region(scene: Scene) -> Drawn:
    site = scene.choose([site for site in scene.blocks if loaded(site.node) and site.loops])
    drawn = site and _cached(scene, site.node, sorted(loaded(site.node)))
    return drawn and {**drawn, "loop": scene.rng.choice(site.loops).var}


def cache_write(scene: Scene) -> Drawn:
    site = scene.choose([site for site in scene.blocks if stored(site.node)])
    return site and _cached(scene, site.node, stored(site.node))


def reindex_cache_read(scene: Scene) -> Drawn:
    return _reindexed(scene, cache_read(scene))


def reindex_cache_write(scene: Scene) -> Drawn:
    return _reindexed(scene, cache_write(scene))


def cache_inplace(scene: Scene) -> Drawn:
    both = [site for site in scene.blocks if loaded(site.node) & {*stored(site.node)}]
    site = scene.choose(both if scene.chance(0.9) else scene.blocks)
    if site is None:
        return None
    shared = sorted(loaded(site.node) & {*stored(site.node)})
    return _cached(scene, site.node, shared or sorted(scene.buffers))


def reindex(scene: Scene) -> Drawn:
    drawn = _reindexed(scene, scene.rng.choice((cache_read, cache_write))(scene))
    return drawn and {name: value for name, value in drawn.items() if name != "scope"}


def cache_index(scene: Scene) -> Drawn:
    indirect = [site for site in scene.blocks if _looks_up(site.node)]
    site = scene.choose(indirect if scene.chance(0.9) else scene.blocks)
    if site is None or _caches(scene) >= MAX_CACHES:
        return None
    drawn = {"block": site.node.name, "scope": scene.rng.choice(SCOPES)}
    buffers = sorted(loaded(site.node))
    return drawn | {"buffer": scene.rng.choice(buffers)} if buffers and scene.chance(0.3) else drawn


def _looks_up(block: Block) -> bool:
    """True if an index of a block contains a load or a search."""
    used = [node for node in walk(block) if isinstance(node, (Load, Store))]
    return any(isinstance(part, (Load, Search)) for node in used for part in walk(*node.indices))


def _caches(scene: Scene) -> int:
    return sum("cache" in step.op or step.op == "reindex" for step in scene.trace)


def _cached(scene: Scene, block: Block, buffers: Sequence[str]) -> Drawn:
    if _caches(scene) >= MAX_CACHES:
        return None
    buffer, scope = scene.rng.choice(buffers), scene.rng.choice(SCOPES)
    return {"block": block.name, "buffer": buffer, "scope": scope}


def _reindexed(scene: Scene, drawn: Drawn) -> Drawn:
    """The same indices, sometimes with the iterators that select the element in another order, if they are
    all."""
    if drawn is None or scene.chance(0.6):
        return drawn
    block = next(site.node for site in scene.blocks if site.node.name == drawn["block"])
    names = [iterator.var for iterator in block.iters if iterator.kind == "S" or scene.chance(0.5)]
    return drawn | {"order": tuple(scene.rng.sample(names, len(names)))}


GENERATORS: dict[str, ArgumentGenerator] = {
    primitive.__name__: primitive
    for primitive in (
        cache_read, cache_region, cache_write, cache_inplace, cache_index, reindex,
        reindex_cache_read, reindex_cache_write,
    )
}  # fmt: skip
