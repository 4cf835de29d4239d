"""The operators and methods of SciPy's matrices that tensors do not have: they are refused with a hint."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gossamer_ir.errors import UnsupportedError

_HINT = "Use to_scipy(), whose result has it."


def _refusal(operator: str) -> Callable[..., Any]:
    """Return the method that refuses an operator."""

    def refuse(self: RefusedOperators, *_others: Any) -> Any:
        raise self._operator_error(operator)

    refuse.__doc__ = f"Refuse the operator `{operator}`."
    return refuse


class RefusedOperators:
    """Refuses sums, powers, remainders, bits and comparisons, whose results have other patterns or none, and
    names the way to other methods of SciPy's matrices.

    >>> RefusedOperators() + 1
    Traceback (most recent call last):
    ...
    gossamer_ir.errors.UnsupportedError: The operator '+' is not defined for a RefusedOperators. Use \
to_scipy(), whose result has it. [tensor.operator]
    >>> RefusedOperators().diagonal()
    Traceback (most recent call last):
    ...
    AttributeError: A RefusedOperators has no attribute 'diagonal'. Use to_scipy(), whose result has it.
    """

    __add__ = __radd__ = _refusal("+")
    __sub__ = __rsub__ = _refusal("-")
    __pow__ = __rpow__ = _refusal("**")
    __rtruediv__ = _refusal("/")
    __floordiv__ = __rfloordiv__ = _refusal("//")
    __mod__ = __rmod__ = _refusal("%")
    __divmod__ = __rdivmod__ = _refusal("divmod")
    __and__ = __rand__ = _refusal("&")
    __or__ = __ror__ = _refusal("|")
    __xor__ = __rxor__ = _refusal("^")
    __abs__ = _refusal("abs")
    __invert__ = _refusal("~")
    __lt__ = _refusal("<")
    __gt__ = _refusal(">")
    __le__ = _refusal("<=")
    __ge__ = _refusal(">=")

    if not TYPE_CHECKING:  # for which a class with this method has all attributes

        def __getattr__(self, name: str) -> Any:
            message = f"A {type(self).__name__} has no attribute '{name}'."
            # Names of protocols are asked for often, and are not SciPy's.
            if not name.startswith("_"):
                from scipy.sparse import csr_array

                if name in ("to_scipy", "to_torch"):
                    message = f"{message} Call gossamer_formats.{name} with it."
                elif hasattr(csr_array, name):
                    message = f"{message} {_HINT}"
            raise AttributeError(message, name=name, obj=self)

    def _operator_error(self, operator: str) -> UnsupportedError:
        return UnsupportedError(
            "tensor.operator",
            f"The operator '{operator}' is not defined for a {type(self).__name__}.",
            hint=_HINT,
        )
