"""Random programs at the coordinate stage with data, and what they leave in their arrays."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np

from tests.generated.data import Data
from tests.generated.expressions import FLOATS, INTS, Expressions
from tests.generated.statements import Statements
from tests.generated.structures import draw_structure


@dataclass
class Program:
    """`kinds` say what it is made of."""

    text: str
    arrays: dict[str, np.ndarray]
    sizes: dict[str, int]
    expected: dict[str, np.ndarray]
    kinds: list[str]


def draw_program(rng: Random, *, special: bool = False) -> Program:
    """A program; where `special`, over floats with NaN, infinities and negative zeros."""
    dtype = rng.choice(FLOATS if special else (*FLOATS, *FLOATS, *INTS))
    data = Data(rng, dtype, special=special)
    kind, structure = draw_structure(rng, data.size)
    draw = Statements(rng, structure, data, Expressions(rng, dtype, special=special))
    axes = [
        *structure.declared,
        f"M = T.sp.dense_fixed({data.size('m', structure.rows)})",
        f"N = T.sp.dense_fixed({data.size('n', structure.columns)})",
        f"K = T.sp.dense_fixed({data.size('kk', draw.extents['k'])})",
        f"L = T.sp.dense_fixed({data.size('ll', draw.extents['l'])})",
    ]
    choices = ["reduction"] * 5 + ["elementwise"] * 3 + ["rowwise"]
    if structure.is_rows_axis and structure.levels[1].parent == "i":
        choices.append("nested")
    kinds = rng.choices(choices, k=rng.choice((1, 1, 1, 2, 2, 3)))
    statements = [getattr(draw, name)(f"step{at}") for at, name in enumerate(kinds)]
    with np.errstate(all="ignore"):
        for statement in statements:
            statement.apply(data.memory)
        expected = {
            name.lower(): values.astype(dtype)
            for name, values in data.memory.items()
            if name.lower() in data.arrays
        }
    arrays = {**data.arrays, **structure.arrays}
    params = [f"{name}: T.handle" for name in arrays]
    params += [f"{name}: T.{rng.choice(INTS)}" for name in data.parameters()]
    rng.shuffle(params)
    lines = [*axes, *data.declared, *(line for found in statements for line in found.lines)]
    text = "\n".join(
        [
            "@T.prim_func",
            f"def program({', '.join(params)}) -> None:",
            '    T.func_attr({"sparse_tir_level": 2})',
            *(f"    {line}" for line in lines),
            "",
        ]
    )
    return Program(text, arrays, data.parameters(), expected, [kind, dtype, *kinds])
