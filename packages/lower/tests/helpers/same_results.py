"""Compares the results of two modules on small integers."""

from __future__ import annotations

import numpy as np

from gossamer_ir.interpret import run
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify import diagnostics

SIZES = [0, 1, 3, 4, 5, 8, 11, 40]


def same_results(before, after, *, sizes=SIZES):
    assert diagnostics(after) == ()
    for n in sizes:
        results = []
        for module in (before, after):
            generator = np.random.default_rng(n)
            x, y = generator.integers(-9, 9, (2, n)).astype(np.float32)
            p = generator.integers(0, n + 1, n)
            run(module, {"x": x, "y": y, "p": p, "n": n})
            results.append((x, y))
        np.testing.assert_array_equal(results[0], results[1])


def nodes(module, kind):
    return [node for node in walk(module) if isinstance(node, kind)]
