"""A kernel that is being printed: the names of its variables in C++, and its buffers."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gossamer_ir.analysis.bounds.overflow import OverflowAnalysis
from gossamer_ir.nodes import Buffer, Expr, Name

_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t
class co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue
decltype default delete do double dynamic_cast else enum explicit export extern false float for friend
goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private
protected public register reinterpret_cast requires return short signed sizeof static static_assert
static_cast struct switch template this thread_local throw true try typedef typeid typename union
unsigned using virtual void volatile wchar_t while xor xor_eq
blockDim blockIdx gridDim gs std threadIdx warpSize workspace
"""


class PrintedFunction(msgspec.Struct):
    """The buffers of a kernel by name, and the variables that have other names in C++.

    >>> function = PrintedFunction()
    >>> function.name("row"), function.name("int"), function.name("NULL"), function.name("größe")
    ('row', 'int_', 'NULL_', 'gr_u00f6_u00dfe')
    """

    bounds_checked_buffers: tuple[str, ...] = ()
    """The buffers of the module that have guards."""
    overflow: OverflowAnalysis | None = None
    """Bounds of its integers; None if nothing is known of them."""
    dynamic_offsets: Mapping[Name, int] = {}
    """The bytes before each buffer in dynamic shared memory, if the kernel has it."""
    buffers: dict[Name, Buffer] = {}
    names: dict[str, str] = {}

    def name(self, name: str) -> str:
        """Return the name of a variable in C++. A name with a blank is one that the program cannot have."""
        if name not in self.names:
            self.names[name] = self._fresh(name)
        return self.names[name]

    def is_exact(self, expr: Expr) -> bool:
        """Return whether no operation of an integer expression overflows."""
        return self.overflow is not None and self.overflow.is_exact(expr)

    def _fresh(self, name: str) -> str:
        text = "".join(mark if mark.isascii() else f"_u{ord(mark):04x}" for mark in name)
        text = text.replace(" ", "_")
        # Headers define macros in capitals; names with two underscores are the compiler's.
        is_reserved = (
            text in _KEYWORDS.split() or "__" in text or (len(text) > 2 and text.isupper())
        )
        text = text.replace("__", "_u_") + "_" if is_reserved else text
        while text in self.names.values():
            text += "_"
        return text
