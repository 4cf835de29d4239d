"""The options of targets that describe a CPU, and the errors for others."""

import pytest

from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target
from gossamer_machine.cpu_options import CPU_OPTIONS, option_value_error, require_options
from gossamer_support.items_by_name import items_by_name

MODEL = items_by_name(CPU_OPTIONS)


def test_the_default_of_an_option_is_one_of_its_values():
    for option in CPU_OPTIONS:
        assert option.parse(str(option.default)) == option.default, option.name


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("speed=high", "toy.option"),
        ("cpu=any,l2=large", "toy.option_value"),
        ("cores=0", "toy.option_value"),
        ("vscale=3", "toy.option_value"),
    ],
)
def test_options_that_a_backend_does_not_have_are_refused(options, code):
    with pytest.raises(ArgumentError) as caught:
        require_options(
            Target.parse(f"toy:{options}"), names=("cpu", *MODEL), model=MODEL, errors="toy"
        )
    assert caught.value.code == code


def test_a_backend_may_give_an_option_values_of_its_own():
    target = Target.parse("toy:vector_bits=2048,cores=2")
    cores = {"cores": MODEL["cores"]}
    require_options(target, names=("vector_bits", "cores"), model=cores, errors="toy")
    with pytest.raises(ArgumentError, match=r"'vector_bits' is not an option of toy"):
        require_options(target, names=("cores",), model=cores, errors="toy")


def test_the_error_of_a_value_names_what_was_expected():
    error = option_value_error(Target.parse("toy:cpu=z80"), "cpu", expected="a CPU", errors="toy")
    assert (
        str(error) == "The option cpu of 'toy:cpu=z80' is 'z80'. Expected a CPU. [toy.option_value]"
    )
