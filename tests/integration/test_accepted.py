"""The output of every pass, in its place in the pipeline, computes the stored results of NumPy."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from gossamer_backend.arguments.size_equations import evaluate_size
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interchange.serialization import loads
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Buffer
from gossamer_lower.passes_by_name import PASSES, apply_pass
from gossamer_lower.pipelines.flat_passes import FLAT_PASSES

SAMPLES = sorted(
    (Path(__file__).parents[2] / "packages/ir/tests/samples/programs").glob("*.json.gz")
)
ALONE = ("lower_iterations", "lower_buffers", "remove_unused_args", "simplify", "declare_regions")
"""Passes with one result and without arguments, which do not depend on another pass."""


def decoded(value):
    if isinstance(value, int):
        return value
    dtype, shape, items = value
    convert = float if "float" in dtype else int
    return np.array([convert(item) for item in items], dtype).reshape(shape)


def entry_of(module):
    return next(function for function in module.functions if function.name == module.entry)


def call(module, values):
    run(module, {param.name: values[param.name] for param in entry_of(module).params})


class Sample:
    """A stored program: its modules, and the contents of its arrays before and after a run."""

    def __init__(self, path):
        record = json.loads(gzip.decompress(path.read_bytes()))
        *self.modules, _ = [loads(json.dumps(text)) for text in record["modules"]]
        self._record = record

    def values(self):
        return {name: decoded(value) for name, value in self._record["values"].items()}

    def check(self, values, what):
        for name, value in self._record["expected"].items():
            wanted = decoded(value)
            np.testing.assert_array_equal(values[name].reshape(wanted.shape), wanted, what)

    def check_module(self, module, what):
        values = self.values()
        call(module, values)
        self.check(values, what)


samples = pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name.partition(".json")[0])


@samples
def test_a_pass_changes_no_result(path):
    sample = Sample(path)
    for module in sample.modules:
        for name in ALONE:
            if module.stage in (PASSES[name].takes or (module.stage,)):
                sample.check_module(apply_pass(name, module), f"{name}, {module.stage}")


@samples
def test_no_pass_on_the_way_to_the_flat_stage_changes_a_result(path):
    sample = Sample(path)
    (current,) = (module for module in sample.modules if module.stage == "loop")
    for lower in FLAT_PASSES:
        before, current = current, lower(current)
        if current != before:
            sample.check_module(current, lower.__name__)


def pair_of(module):
    """The kernel of the searches and the one that uses their results; nothing if no search is extracted."""
    if module.stage not in PASSES["extract_inspector"].takes:
        return []
    try:
        return [apply_pass(name, module) for name in ("extract_inspector", "use_inspector_results")]
    except UnsupportedError:
        return []


def with_results(values, module):
    """The values, and arrays for the results of the searches."""
    entry = entry_of(module)
    arrays = {
        buffer.name: values[buffer.handle] for buffer in entry.buffers if buffer.handle in values
    }
    for buffer in entry.buffers:
        if isinstance(buffer, Buffer) and buffer.handle not in (None, *values):
            sizes = [evaluate_size(size, values, arrays=arrays) for size in buffer.shape]
            values = {**values, buffer.handle: np.full(sizes, -77, buffer.dtype)}
    return values


@samples
def test_searches_that_are_taken_out_find_the_same(path):
    sample = Sample(path)
    for module in sample.modules:
        pair = pair_of(module)
        values = with_results(sample.values(), pair[0]) if pair else {}
        for program in pair:
            call(program, values)
        if pair:
            sample.check(values, module.stage)
