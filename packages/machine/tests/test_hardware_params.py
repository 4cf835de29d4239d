"""The parameters of a CPU follow from the options of a target."""

from __future__ import annotations

import pytest

from gossamer_ir.interchange.records import Target
from gossamer_machine.cpu_options import CPU_OPTIONS
from gossamer_machine.hardware_params import HardwareParams, hardware_params


def test_each_option_sets_a_parameter_whose_default_it_has():
    assert hardware_params(Target("generic-cpu")) == HardwareParams()
    assert [option.parameter for option in CPU_OPTIONS] == [*HardwareParams._fields]


@pytest.mark.parametrize(
    ("option", "parameter", "value"),
    [
        ("vector_bits=128", "vector_bits", 128),
        ("l2=4096", "private_cache", 4096),
        ("l3=65536", "shared_cache", 65536),
        ("gathers=slow", "gathers", "slow"),
        ("cores=4", "cores", 4),
        ("vscale=8", "vscale", 8),
        ("vscale=none", "vscale", "none"),
    ],
)
def test_an_option_that_is_given_replaces_the_default(option, parameter, value):
    found = hardware_params(Target.parse(f"generic-cpu:{option}"))
    assert found == HardwareParams()._replace(**{parameter: value})


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
    assert hardware_params(Target.parse(f"other-cpu:{option}")) == HardwareParams()


@pytest.mark.parametrize(
    ("elements", "lanes"), [(None, 16), (100, 16), (9, 16), (8, 8), (3, 4), (1, 1), (0, 1)]
)
def test_a_vector_is_as_narrow_as_its_elements_allow(elements, lanes):
    assert HardwareParams().lanes("float32", holding=elements) == lanes


@pytest.mark.parametrize(
    ("options", "vscale"),
    [("", 4), (":vector_bits=128", 1), (":vector_bits=256,vscale=16", 16), (":vscale=none", None)],
)
def test_vscale_is_that_of_the_vectors_unless_it_is_given(options, vscale):
    assert hardware_params(Target.parse(f"generic-cpu{options}")).fixed_vscale == vscale
