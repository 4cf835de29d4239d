"""Steps that move a block to where what it makes is used, or what it uses is made."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_schedule.sites import Site
from tests.generated.drawers.scene import Drawer, Drawn, Scene


def compute_at(scene: Scene) -> Drawn:
    return _moved(scene, scene.makers)


def reverse_compute_at(scene: Scene) -> Drawn:
    return _moved(scene, scene.users or scene.blocks)


def _moved(scene: Scene, blocks: Sequence[Site]) -> Drawn:
    site = scene.choose(blocks)
    loop = site and scene.loop_around(scene.others(site))
    return loop and {"block": site.node.name, "loop": loop}


def compute_inline(scene: Scene) -> Drawn:
    site = scene.choose([site for site in scene.makers if not site.node.init])
    return site and {"block": site.node.name}


def reverse_compute_inline(scene: Scene) -> Drawn:
    site = scene.choose([site for site in scene.users if not site.node.init])
    return site and {"block": site.node.name}


DRAWERS: dict[str, Drawer] = {
    found.__name__: found
    for found in (compute_at, reverse_compute_at, compute_inline, reverse_compute_inline)
}
