"""Argument generators of the primitives that change where elements are stored."""

from __future__ import annotations

from gossamer_ir.nodes import AnyBuffer, SparseBuffer
from tests.fuzzing.schedules.argument_generators.scene import ArgumentGenerator, Drawn, Scene

SCOPES = (*("global", "local") * 4, "shared")


def set_scope(scene: Scene) -> Drawn:
    buffer = scene.choose(scene.allocated)
    return buffer and {"buffer": buffer, "scope": scene.rng.choice(SCOPES)}


def storage_align(scene: Scene) -> Drawn:
    buffer = scene.choose([name for name in scene.allocated if ndim(scene.buffers[name]) > 1])
    if buffer is None:
        return None
    factor = scene.rng.choice((2, 4, 8, 16))
    axis = scene.rng.randrange(ndim(scene.buffers[buffer]) - 1)
    return {"buffer": buffer, "axis": axis, "factor": factor, "offset": scene.rng.choice((0, 1))}


def transform_layout(scene: Scene) -> Drawn:
    buffer = scene.choose(scene.allocated)
    if buffer is None:
        return None
    names = [f"x{at}" for at in range(ndim(scene.buffers[buffer]))]
    results = [part for name in names for part in _digits(scene, name)]
    scene.rng.shuffle(results)
    pad = scene.rng.choice(({}, {"pad": "0"}, {"pad": "0.0"}, {"pad": "0.0"}))
    return {"buffer": buffer, "index_map": f"{', '.join(names)} -> {', '.join(results)}", **pad}


def ndim(buffer: AnyBuffer) -> int:
    return len(buffer.axes if isinstance(buffer, SparseBuffer) else buffer.shape)


def _digits(scene: Scene, name: str) -> list[str]:
    """An index as one or two results."""
    divisor = scene.rng.choice((2, 3, 4))
    apart = [f"{name} // {divisor}", f"{name} % {divisor}"]
    folded = [f"{name} % {divisor} * 2 + {name} // {divisor}"]
    return scene.rng.choice(([name], apart, apart, folded))


GENERATORS: dict[str, ArgumentGenerator] = {
    primitive.__name__: primitive for primitive in (set_scope, storage_align, transform_layout)
}
