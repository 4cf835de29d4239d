"""Steps that leave the program as it is: notes, and numbers for later steps."""

from __future__ import annotations

from gossamer_schedule.sites import name_of
from tests.generated.drawers.scene import Drawer, Drawn, Scene

KEYS = ("origin", "note")


def annotate(scene: Scene) -> Drawn:
    names = [name for site in scene.sites if (name := name_of(site.node))]
    name = scene.choose(names)
    value = scene.rng.choice((True, 3, "rows"))
    return name and {"name": name, "key": scene.rng.choice(KEYS), "value": value}


def unannotate(scene: Scene) -> Drawn:
    found = scene.choose([
        (name_of(site.node), key) for site in scene.sites if name_of(site.node)
        for key, _ in site.node.annotations if key in KEYS
    ])  # fmt: skip
    return found and {"name": found[0], "key": found[1]}


def sample_categorical(scene: Scene) -> Drawn:
    name, seed = f"number{len(scene.trace)}", scene.rng.randrange(100)
    weights = scene.rng.choice(({}, {"weights": (1, 2, 0)}))
    return {"name": name, "candidates": (2, 3, 4), "seed": seed, **weights}


DRAWERS: dict[str, Drawer] = {
    found.__name__: found for found in (annotate, unannotate, sample_categorical)
}
