"""Argument generators of annotations and of samples, which do not change the program."""

from __future__ import annotations

from gossamer_schedule.cursor.cursor_at import name_of
from tests.fuzzing.schedules.argument_generators.scene import (
    ArgumentGenerator,
    Drawn,
    Scene,
    loaded,
    stored,
)

KEYS = ("origin", "note")


def annotate(scene: Scene) -> Drawn:
    names = [name for site in scene.sites if (name := name_of(site.node))]
    name = scene.choose(names)
    value = scene.rng.choice((True, 3, "rows"))
    return name and {"name": name, "key": scene.rng.choice(KEYS), "value": value}


def unannotate(scene: Scene) -> Drawn:
    choice = scene.choose([
        (name_of(site.node), key) for site in scene.sites if name_of(site.node)
        for key, _ in site.node.annotations if key in KEYS
    ])  # fmt: skip
    return choice and {"name": choice[0], "key": choice[1]}


def hide_buffer_access(scene: Scene) -> Drawn:
    site, access = scene.choose(scene.blocks), scene.choice_of("hide_buffer_access", "access")
    if site is None:
        return None
    used = sorted(loaded(site.node)) if access == "read" else stored(site.node)
    buffers = tuple(scene.rng.sample(used, min(len(used), scene.rng.choice((0, 1, 2)))))
    return {"block": site.node.name, "access": access, "buffers": buffers}


def store_nontemporal(scene: Scene) -> Drawn:
    site = scene.choose([site for site in scene.blocks if stored(site.node)])
    return site and {"block": site.node.name, "buffer": scene.rng.choice(stored(site.node))}


def set_block_filter(scene: Scene) -> Drawn:
    return {"key": scene.rng.choice(KEYS)} if scene.blocks else None


def unset_block_filter(scene: Scene) -> Drawn:
    return {} if scene.blocks and dict(scene.function.annotations).get("block_filter") else None


def sample_categorical(scene: Scene) -> Drawn:
    name, seed = f"number{len(scene.trace)}", scene.rng.randrange(100)
    weights = scene.rng.choice(({}, {"weights": (1, 2, 0)}))
    return {"name": name, "candidates": (2, 3, 4), "seed": seed, **weights}


GENERATORS: dict[str, ArgumentGenerator] = {
    primitive.__name__: primitive
    for primitive in (
        annotate, unannotate, sample_categorical, hide_buffer_access, set_block_filter,
        store_nontemporal, unset_block_filter,
    )
}  # fmt: skip
