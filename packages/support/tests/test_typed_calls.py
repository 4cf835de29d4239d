"""Public functions reject arguments that do not have the declared types."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
import pytest

from gossamer_support.errors import ArgumentError, UserError
from gossamer_support.typed_calls import conforms_to, typed


class Shape:
    """A type of the tests."""


class Square(Shape):
    """A type below it."""


N = TypeVar("N", bound=Shape)


@typed
def area(shape: Shape, *, scale: bytes | str) -> None:
    len(scale)
    vars(shape)["sides"] = ()


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (3, int), (np.int32(3), int), (3, float), (np.float32(3), float), ("x", str | None),
        (None, str | None), ((1, "x"), tuple[int, str]), ((), tuple[int, ...]), ([1], Sequence[int]),
        ({"a": 1}, Mapping[str, int]), ("fast", Literal["fast"]), (len, Callable[[Any], int]),
        (np.zeros(2), np.ndarray[Any, Any]), (object(), Any), (object(), "a name"),
        (Square(), N), (3, TypeVar("T")), (None, None),
    ],
)  # fmt: skip
def test_values_of_the_annotated_type_are_accepted(value, wanted):
    assert conforms_to(value, wanted)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("3", int), (3.5, int), ("x", float), (b"x", str | None), (("x", 1), tuple[int, str]),
        ((1, "x"), tuple[int, ...]), ([1, None], Sequence[int]), ({"a": "b"}, Mapping[str, int]),
        ({1: 1}, Mapping[str, int]), ("slow", Literal["fast"]), (3, Callable[[Any], int]),
        ([0.0], np.ndarray[Any, Any]), (3, N), (3, None), (b"xy", Sequence[str]),
    ],
)  # fmt: skip
def test_values_of_another_type_are_refused(value, wanted):
    assert not conforms_to(value, wanted)


def test_an_argument_of_a_wrong_type_is_named():
    with pytest.raises(ArgumentError) as raised:
        area("text", scale="1")
    assert raised.value.render() == (
        "Argument 'shape' of 'area' is 'text'; expected Shape. [argument.type]"
    )
    with pytest.raises(
        ArgumentError, match="'scale' of 'area' is of type object; expected bytes or str"
    ):
        area(Square(), scale=object())


def test_an_unknown_argument_is_named():
    with pytest.raises(ArgumentError) as raised:
        area(Square(), scale="1", indent=2)
    assert raised.value.render() == (
        "Invalid call of 'area': got an unexpected keyword argument 'indent'. "
        "Its arguments are shape, scale. [argument.names]"
    )


def test_other_errors_stay_what_they_are():
    @typed
    def refused(number: int) -> None:
        raise UserError("a.code", "The body says more.")

    with pytest.raises(UserError, match="The body says more"):
        refused("x")

    @typed
    def halved(number: int, *others: int, **named: "Unknown") -> float:  # noqa: F821  (on purpose)
        return number / sum(others)

    with pytest.raises(ZeroDivisionError):
        halved(3, named=4)
    with pytest.raises(ArgumentError, match=r"'others' of '.*halved' is 'x'; expected int"):
        halved(3, "x")
    assert halved(3, 2) == 1.5


@pytest.mark.parametrize("kind", [TypeError, AttributeError, KeyError])
def test_an_error_of_the_body_is_raised_if_the_arguments_have_their_types(kind):
    @typed
    def failing(number: int) -> None:
        raise kind("of the body")

    with pytest.raises(kind, match="of the body"):
        failing(3)
