"""The programs of `examples` and what they are compared with, against an oracle in float64."""

from __future__ import annotations

from itertools import chain

import pytest
from msgspec.structs import replace

from examples import EXAMPLES
from examples.example import UnavailableError

pytestmark = pytest.mark.unserialized

GENERATED = [(example, case) for example in EXAMPLES.values() for case in example.cases]
STORED = [(example, case) for example in EXAMPLES.values() for case in example.datasets]


def inputs_of(make):
    try:
        return make()
    except UnavailableError as error:
        pytest.skip(str(error))


def with_results(example, inputs):
    """The example with the results of these inputs, so that the oracle computes them once."""
    exact, size = example.oracle(inputs), example.magnitude(inputs)
    return replace(example, oracle=lambda _: exact, magnitude=lambda _: size)


@pytest.mark.parametrize(
    ("example", "case"), GENERATED, ids=[f"{example.name}-{case}" for example, case in GENERATED]
)
def test_generated_inputs(example, case):
    inputs = example.cases[case]()
    example = with_results(example, inputs)
    for name, prepare in chain(example.programs.items(), example.baselines.items()):
        try:
            call = prepare(inputs)
        except UnavailableError:
            assert name in example.baselines
            continue
        for _ in range(2):  # a call leaves no trace in the next one
            assert example.relative_error(inputs, call()) <= 1, name


@pytest.mark.parametrize(
    ("example", "case"), STORED, ids=[f"{example.name}-{case}" for example, case in STORED]
)
def test_data_sets(example, case):
    inputs = inputs_of(example.datasets[case])
    example = with_results(example, inputs)
    for name, prepare in example.programs.items():
        assert example.relative_error(inputs, prepare(inputs)()) <= 1, name
