"""The machine that the options of a target describe, and what follows from its record."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from gossamer_ir.interchange.records import Target
from gossamer_machine import Machine, machine_of


def test_the_defaults_of_options_are_those_of_the_record():
    assert machine_of(Target("generic-cpu")) == Machine()


def test_the_record_survives_encoding():
    machine = Machine(min_vector_bits=128, is_scalable=True, fixed_vscale=None)
    encoded = msgspec.json.encode(machine)
    assert msgspec.json.decode(encoded, type=Machine) == machine
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.json.decode(b'{"vectors": 3}', type=Machine)


@pytest.mark.parametrize(
    ("option", "changes"),
    [
        ("vector_bits=128", {"min_vector_bits": 128, "fixed_vscale": 1}),
        ("l2=4096", {"private_cache": 4096}),
        ("l3=65536", {"shared_cache": 65536}),
        ("gathers=slow", {"gathers": "slow"}),
        ("cores=4", {"cores": 4}),
        ("vscale=8", {"fixed_vscale": 8}),
        ("vscale=none", {"fixed_vscale": None}),
    ],
)
def test_an_option_that_is_given_replaces_the_default(option, changes):
    machine = machine_of(Target.parse(f"generic-cpu:{option}"))
    assert machine == replace(Machine(), **changes)


@pytest.mark.parametrize(
    "option",
    [
        "vector_bits=100",
        "l2=0",
        "l2=-1",
        "l3=1K",
        "gathers=none",
        "cores=0",
        "cores=many",
        "vscale=3",
    ],
)
def test_a_value_that_is_not_valid_is_ignored_by_rules(option):
    assert machine_of(Target.parse(f"other-cpu:{option}")) == Machine()


@pytest.mark.parametrize(
    ("elements", "lanes"), [(None, 16), (100, 16), (9, 16), (8, 8), (3, 4), (1, 1), (0, 1)]
)
def test_a_vector_is_as_narrow_as_its_elements_allow(elements, lanes):
    assert Machine().lanes("float32", holding=elements) == lanes


@pytest.mark.parametrize(
    ("options", "vscale"),
    [("", 4), (":vector_bits=128", 1), (":vector_bits=256,vscale=16", 16), (":vscale=none", None)],
)
def test_vscale_is_that_of_the_vectors_unless_it_is_given(options, vscale):
    assert machine_of(Target.parse(f"generic-cpu{options}")).fixed_vscale == vscale
