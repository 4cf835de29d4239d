"""Coordinates of the slots of a bitmask, and slots of coordinates: both from the word of a fiber."""

from __future__ import annotations

from gossamer_ir.core.build import ONE, ZERO, sub
from gossamer_ir.nodes import Binary, Call, Compare, Expr


def coordinate_of_slot(word: Expr, position: Expr, *, length: Expr) -> Expr:
    """Return the coordinate in a slot of a fiber: the position of a bit that is set in the word, an int64.

    The coordinate is less than `length` whatever the word is, so that what it indexes is in bounds.
    """
    bit = Call("find_nth_bit", (word, position), "int64")
    return Binary("min", bit, sub(length, ONE))


def has_slot(word: Expr, coordinate: Expr) -> Expr:
    """Return the condition that a fiber has a slot with this coordinate. A coordinate that is not a position
    of a bit has none: a shift by as many bits or more gives 0."""
    return Compare("ne", Binary("bitand", word, _bit(coordinate)), ZERO)


def slot_of_coordinate(word: Expr, coordinate: Expr) -> Expr:
    """Return the position in its fiber of the slot with a coordinate, if there is one: the number of bits
    that are set below it."""
    below = sub(_bit(coordinate), ONE)
    return Call("popcount", (Binary("bitand", word, below),), "int64")


def _bit(coordinate: Expr) -> Expr:
    return Binary("shl", ONE, coordinate)
