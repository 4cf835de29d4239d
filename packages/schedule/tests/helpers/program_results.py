"""Results of programs on small integers, to compare them before and after primitives."""

from __future__ import annotations

import numpy as np

from gossamer_ir.analysis.bounds.loops_by_name import loops_of
from gossamer_ir.interpret import run
from gossamer_ir.nodes import For
from gossamer_ir.verify import verify


def arrays_after(module, **arguments) -> dict[str, np.ndarray]:
    """The arrays of values of a `program` after a run with these offsets and scalars."""
    random = np.random.default_rng(5)
    arrays = {name: random.integers(-4, 5, (8, 8)).astype(np.float32) for name in "xyz"}
    arrays |= {name: random.integers(-4, 5, 64).astype(np.float32) for name in "vw"}
    run(verify(module), arrays | arguments)
    return arrays


def outcome(module, **scalars) -> list[list[float]]:
    """All arrays of a `program` after a run."""
    arguments = {"p": np.arange(9, dtype=np.int32), "n": 7} | scalars
    return [array.ravel().tolist() for array in arrays_after(module, **arguments).values()]


def same(builder, module, **scalars) -> bool:
    return outcome(builder.module, **scalars) == outcome(module, **scalars)


def scaled(module, sizes, **more) -> np.ndarray:
    """The array `y` of a program that scales `x`, or copies it."""
    x = np.arange(sizes[0] * sizes[1], dtype=np.float32).reshape(sizes)
    y = np.full(sizes, 77.0, np.float32)
    names = dict(zip(("m", "n"), sizes, strict=True))
    wanted = {param.name for param in module.functions[0].params}
    arguments = {"x": x, "y": y} | names
    run(verify(module), {name: arguments[name] for name in wanted})
    return y


def loop_named(module, name: str) -> For:
    return loops_of(module.functions[0])[name]
