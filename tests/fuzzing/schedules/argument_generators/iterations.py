"""Argument generators of the primitives of the coordinate stage."""

from __future__ import annotations

from gossamer_ir.nodes import FuseAxes, OverAxis
from tests.fuzzing.schedules.argument_generators.scene import ArgumentGenerator, Drawn, Scene


def sparse_reorder(scene: Scene) -> Drawn:
    site = scene.choose([site for site in scene.iterations if len(site.node.vars) > 1])
    if site is None:
        return None
    names = list(site.node.vars)
    at = scene.rng.randrange(len(names) - 1)
    near = [*names[:at], names[at + 1], names[at], *names[at + 2 :]]
    order = near if scene.chance(0.5) else scene.rng.sample(names, len(names))
    return {"iteration": site.node.name, "order": tuple(order)}


def sparse_fuse(scene: Scene) -> Drawn:
    pairs = [
        (site.node.name, axes)
        for site in scene.iterations
        for axes in zip(site.node.axes, site.node.axes[1:], strict=False)
        if all(isinstance(item, OverAxis) for item in axes)
    ]
    parents = {axis.name: axis.parent for axis in scene.function.axes}
    choice = scene.choose([p for p in pairs if parents[p[1][1].axis] == p[1][0].axis] or pairs)
    if choice is None:
        return None
    name, axes = choice
    return {"iteration": name, "axes": tuple(item.axis for item in axes)}


def sparse_unfuse(scene: Scene) -> Drawn:
    choice = scene.choose([
        (site.node.name, item.axes) for site in scene.iterations for item in site.node.axes
        if isinstance(item, FuseAxes)
    ])  # fmt: skip
    return choice and {"iteration": choice[0], "axes": choice[1]}


def sparse_compute_at(scene: Scene) -> Drawn:
    pairs = [
        (first.node, second.node)
        for first in scene.iterations
        for second in scene.iterations
        if first.precedes(second)
    ]
    alike = [pair for pair in pairs if pair[0].axes[:1] == pair[1].axes[:1]]
    choice = scene.choose(alike or pairs)
    if choice is None:
        return None
    first, second = choice
    same = sum(a == b for a, b in zip(first.axes, second.axes, strict=False))
    var = scene.rng.choice(second.vars[: max(same, 1)])
    return {"iteration": first.name, "into": second.name, "var": var}


GENERATORS: dict[str, ArgumentGenerator] = {
    primitive.__name__: primitive
    for primitive in (sparse_reorder, sparse_fuse, sparse_unfuse, sparse_compute_at)
}
