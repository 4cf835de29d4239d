"""Writes a sum of products as a program of the coordinate stage."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from gossamer.einsum_programs.subscripts import Subscripts
from gossamer_ir.nodes import Module
from gossamer_ir.script import parse_module

# Other operations: einsum refuses them as reducers.
ReducerName: TypeAlias = Literal["sum", "max", "min"]
# Other operations: not reducers of einsum.
UPDATES: dict[ReducerName, tuple[str, float]] = {
    "sum": ("{old} + {new}", 0.0),
    "max": ("T.max({old}, {new})", -float("inf")),
    "min": ("T.min({old}, {new})", float("inf")),
}
"""For each reducer, the update of a result, and the value of a result without terms."""

RESULT = re.compile(r"\bout\b")


class EinsumProgram(msgspec.Struct, frozen=True):
    """The properties that decide the program of a sum of products, besides the formats of its operands."""

    subscripts: Subscripts
    dtype: str
    """That of all operands and of the result."""
    iterated: int | None
    """The operand whose stored elements are iterated; None: all are dense."""
    reducer: ReducerName = "sum"
    epilogue: str | None = None
    """An expression of the script in `out`, applied to each element of the result."""

    @property
    def has_pattern(self) -> bool:
        """True if the result is stored like the iterated operand: it has its subscripts."""
        return self.iterated is not None and (
            self.subscripts.operands[self.iterated] == self.subscripts.result
        )

    @property
    def order(self) -> str:
        """The letters in the order of loops: of the iterated operand, then of the result, then others."""
        first = "" if self.iterated is None else self.subscripts.operands[self.iterated]
        return "".join(dict.fromkeys(first + self.subscripts.result + self.subscripts.letters))


def operand_name(number: int) -> str:
    """Return the name of the buffer of an operand; that of its handle is the same in small letters.

    >>> operand_name(1)
    'X1'
    """
    return f"X{number}"


def size_name(letter: str) -> str:
    """Return the name of the size of a dimension.

    >>> size_name("i"), size_name("I")
    ('n_i', 'n_upper_i')
    """
    return f"n_{var_of(letter)}"


def var_of(letter: str) -> str:
    """Return the variable over a dimension: the letter, or a name for a capital letter."""
    return letter if letter.islower() else f"upper_{letter.lower()}"


def dense_program(program: EinsumProgram, fixed: Mapping[str, int]) -> Module:
    """Return the program with all operands stored densely; letters of `fixed` have constant sizes."""
    return parse_module("\n".join(_lines(program, fixed)) + "\n")


def _lines(program: EinsumProgram, fixed: Mapping[str, int]) -> list[str]:
    subscripts, order = program.subscripts, program.order
    names = [operand_name(number) for number in range(len(subscripts.operands))]
    handles = [f"{name.lower()}: T.handle" for name in names]
    sizes = [f"{size_name(letter)}: T.int64" for letter in order if letter not in fixed]
    lines = [
        "@T.prim_func",
        f"def einsum({', '.join([*handles, 'out: T.handle', *sizes])}) -> None:",
        '    T.func_attr({"sparse_tir_level": 2})',
    ]
    for letter in order:
        length = fixed.get(letter, size_name(letter))
        lines.append(f"    {_axis_of(letter)} = T.sp.dense_fixed({length})")
    if not subscripts.result:
        lines.append("    One = T.sp.dense_fixed(1)")
    for name, letters in zip(
        [*names, "Out"], [*subscripts.operands, subscripts.result], strict=True
    ):
        axes = "".join(f"{_axis_of(letter)}, " for letter in letters) or "One,"
        lines.append(f'    {name} = T.sp.match_buffer({name.lower()}, ({axes}), "{program.dtype}")')
    return [*lines, *_stmts(program, names)]


def _axis_of(letter: str) -> str:
    return f"axis_{var_of(letter)}" if letter.isupper() else letter.upper()


def _stmts(program: EinsumProgram, names: Sequence[str]) -> list[str]:
    subscripts, order = program.subscripts, program.order
    result = _element("Out", subscripts.result)
    factors = map(_element, names, subscripts.operands)
    update, init = UPDATES[program.reducer]
    term = update.format(old=result, new=" * ".join(factors))
    kinds = "".join("S" if letter in subscripts.result else "R" for letter in order)
    lines = [
        _iteration(order, kinds, "einsum"),
        "        with T.init():",
        f"            {result} = T.{program.dtype}('{init}')",
        f"        {result} = {term}",
    ]
    if program.epilogue is not None:
        value = RESULT.sub(result, program.epilogue)
        lines += [
            _iteration(subscripts.result, "S" * len(subscripts.result), "epilogue"),
            f"        {result} = {value}",
        ]
    return lines


def _iteration(letters: str, kinds: str, name: str) -> str:
    axes = ", ".join(map(_axis_of, letters)) or "One"
    vars = ", ".join(map(var_of, letters)) or "one"
    kinds = kinds or "S"
    return f'    with T.sp.iteration([{axes}], "{kinds}", "{name}") as [{vars}]:'


def _element(name: str, letters: str) -> str:
    return f"{name}[{', '.join(map(var_of, letters)) or 0}]"
