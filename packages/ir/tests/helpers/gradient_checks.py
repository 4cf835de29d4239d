"""Compares the adjoint of a program with differences of the program's own results."""

import numpy as np
import pytest

from gossamer_ir.interpret import run
from gossamer_ir.transform.differentiation.adjoint_function import adjoint_module
from gossamer_ir.traversal.buffer_uses import buffers_written
from gossamer_ir.verify import verify

STEP = 1e-6
"""About the cube root of the precision of float64: rounding and curvature are then equally small."""


def checked_gradients(module, arguments, *, wrt=(), outputs=(), tolerance=1e-6):
    """Check the derivative in a random direction by each argument, for random gradients of the results, and
    return the gradients. `arguments` are those of the program, whose floats are float64."""
    rng = np.random.default_rng(0)
    adjoint = verify(adjoint_module(module, wrt=wrt, outputs=outputs))
    names = [param.name for param in adjoint.functions[0].params]
    with_gradient = [name for name in arguments if f"{name}_grad" in names]
    results = run_on_copies(module, arguments)
    written = _handles_written(module)
    seeds = {name: _finite_seed(results[name], rng) for name in with_gradient if name in written}
    gradients = {
        name: np.zeros_like(arguments[name]) for name in with_gradient if name not in written
    }
    every = {**results, **_of_gradients(seeds), **_of_gradients(gradients)}
    run(adjoint, {name: every[name] for name in names})
    for name, gradient in gradients.items():
        direction = rng.standard_normal(gradient.shape)
        expected = _difference(module, arguments, name, direction, seeds)
        actual = float(np.sum(gradient * direction))
        if not abs(actual - expected) <= tolerance * max(1.0, abs(expected)):
            pytest.fail(f"The derivative by '{name}' is {actual}; differences give {expected}.")
    return gradients


def _of_gradients(arrays):
    return {f"{name}_grad": array for name, array in arrays.items()}


def _finite_seed(result, rng):
    """Return a random gradient of a result: 0 for elements that are not finite, which have no difference."""
    return np.where(np.isfinite(result), rng.standard_normal(result.shape), 0.0)


def _handles_written(module):
    (function,) = module.functions
    stored = buffers_written(function.body)
    return {buffer.handle for buffer in function.buffers if buffer.name in stored}


def _difference(module, arguments, name, direction, seeds):
    """Return the central difference of the results, weighted by their gradients."""
    above, below = (
        run_on_copies(module, {**arguments, name: arguments[name] + step * direction})
        for step in (STEP, -STEP)
    )
    total = 0.0
    for result, seed in seeds.items():
        finite = seed != 0
        change = above[result][finite] - below[result][finite]
        total += float(np.sum(seed[finite] * change)) / (2 * STEP)
    return total


def run_on_copies(module, arguments):
    """Return the arguments after a run of the program, which leaves those that are passed as they are."""
    copied = {
        name: value.copy() if isinstance(value, np.ndarray) else value
        for name, value in arguments.items()
    }
    run(module, copied)
    return copied
