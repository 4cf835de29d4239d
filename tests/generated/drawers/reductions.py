"""Steps that take reductions apart."""

from __future__ import annotations

from tests.generated.drawers.scene import Drawer, Drawn, Scene


def decompose_reduction(scene: Scene) -> Drawn:
    site = scene.choose([site for site in scene.blocks if site.node.init and site.loops])
    if site is None:
        return None
    reducing = scene.feeding(site, "R")
    around = [loop.var for loop in site.loops]
    fitting = around[: 1 + around.index(reducing[0])] if reducing else around
    loop = scene.rng.choice(fitting if scene.chance(0.8) else around)
    return {"block": site.node.name, "loop": loop}


def rfactor(scene: Scene) -> Drawn:
    loops = [name for site in scene.blocks for name in scene.feeding(site, "R")]
    loop = scene.choose(loops)
    return loop and {"loop": loop, **scene.rng.choice(({}, {}, {"axis": 1}, {"axis": 2}))}


DRAWERS: dict[str, Drawer] = {found.__name__: found for found in (decompose_reduction, rfactor)}
