"""Applies functions to operands, most of which are variables and constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gossamer_ir.interpret.frame import Eval, Frame
from gossamer_ir.interpret.translator import Translator


def apply_to_one(function: Callable[[Any], Any], operand: Eval, translator: Translator) -> Eval:
    """Return a function of an operand as a function of the frame."""
    name = translator.vars.get(operand)
    if name is None:
        return lambda frame: function(operand(frame))

    def run(frame: Frame) -> Any:
        try:
            value = frame.values[name]
        except KeyError:
            value = operand(frame)  # raises an error with the name of the variable
        return function(value)

    return run


def apply_to_two(
    function: Callable[[Any, Any], Any], lhs: Eval, rhs: Eval, translator: Translator
) -> Eval:
    """Return a function of two operands as a function of the frame.

    It reads variables and constants itself: a call for each would take as long as the operation.
    """
    left, right = translator.vars.get(lhs), translator.vars.get(rhs)
    constant = translator.constants.get(rhs)
    if constant is not None:
        return _apply_to_constant(function, lhs, constant, left)
    if left is not None and right is not None:
        return _apply_to_vars(function, lhs, rhs, (left, right))
    if left is not None:
        return _apply_to_var_and_operand(function, lhs, rhs, left)
    if right is not None:
        return _apply_to_operand_and_var(function, lhs, rhs, right)
    return lambda frame: function(lhs(frame), rhs(frame))


def _apply_to_constant(
    function: Callable[[Any, Any], Any], lhs: Eval, constant: Any, name: str | None
) -> Eval:
    if name is None:
        return lambda frame: function(lhs(frame), constant)

    def run(frame: Frame) -> Any:
        try:
            value = frame.values[name]
        except KeyError:
            value = lhs(frame)
        return function(value, constant)

    return run


def _apply_to_vars(
    function: Callable[[Any, Any], Any], lhs: Eval, rhs: Eval, names: tuple[str, str]
) -> Eval:
    left, right = names

    def run(frame: Frame) -> Any:
        values = frame.values
        try:
            operands = values[left], values[right]
        except KeyError:
            operands = lhs(frame), rhs(frame)
        return function(*operands)

    return run


def _apply_to_var_and_operand(
    function: Callable[[Any, Any], Any], lhs: Eval, rhs: Eval, name: str
) -> Eval:
    def run(frame: Frame) -> Any:
        try:
            value = frame.values[name]
        except KeyError:
            value = lhs(frame)
        return function(value, rhs(frame))

    return run


def _apply_to_operand_and_var(
    function: Callable[[Any, Any], Any], lhs: Eval, rhs: Eval, name: str
) -> Eval:
    def run(frame: Frame) -> Any:
        first = lhs(frame)
        try:
            value = frame.values[name]
        except KeyError:
            value = rhs(frame)
        return function(first, value)

    return run
