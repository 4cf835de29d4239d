"""Runs a `program` on small integers, to compare it with itself after primitives."""

from __future__ import annotations

import numpy as np

from gossamer_ir.interpret import run
from gossamer_ir.verify import verify


def outcome(module, **scalars) -> list[list[float]]:
    """All arrays of a `program` after a run."""
    random = np.random.default_rng(5)
    arrays = {name: random.integers(-4, 5, (8, 8)).astype(np.float32) for name in "xyz"}
    arrays |= {name: random.integers(-4, 5, 64).astype(np.float32) for name in "vw"}
    run(verify(module), arrays | {"p": np.arange(9, dtype=np.int32), "n": 7} | scalars)
    return [array.ravel().tolist() for array in arrays.values()]


def same(builder, module, **scalars) -> bool:
    return outcome(builder.module, **scalars) == outcome(module, **scalars)
