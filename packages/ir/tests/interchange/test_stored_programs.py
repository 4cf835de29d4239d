"""Encoded programs of every stage are decoded, and compute the stored results of NumPy."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from gossamer_ir.interchange.serialization import loads
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.verify import verify

SAMPLES = sorted((Path(__file__).parents[1] / "samples" / "programs").glob("*.json.gz"))
STAGES = ["coordinate", "position", "loop", "flat"]


def decoded(value):
    if isinstance(value, int):
        return value
    dtype, shape, items = value
    numbers = [float(item) if "float" in dtype else int(item) for item in items]
    return np.array(numbers, dtype).reshape(shape)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_a_frozen_program_is_loaded_at_every_stage_and_computes_the_same(path):
    record = json.loads(gzip.decompress(path.read_bytes()))
    stages = []
    for encoded in record["modules"]:
        module = verify(loads(json.dumps(encoded)))
        assert parse_module(print_module(module)) == module
        values = {name: decoded(value) for name, value in record["values"].items()}
        entry = next(function for function in module.functions if function.name == module.entry)
        run(module, {param.name: values[param.name] for param in entry.params})
        for name, value in record["expected"].items():
            wanted = decoded(value)
            np.testing.assert_array_equal(
                values[name].reshape(wanted.shape), wanted, f"{name}, {module.stage}"
            )
        stages.append(module.stage)
    assert stages == [*STAGES[STAGES.index(stages[0]) :], "flat"]


def test_there_are_programs_of_every_kind():
    assert len(SAMPLES) >= 40
