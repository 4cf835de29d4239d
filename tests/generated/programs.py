"""Random programs at the coordinate stage with data, and what they leave in their arrays."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np

from tests.generated.data import Data
from tests.generated.expressions import FLOATS, INTS, Expressions
from tests.generated.statements import Statements
from tests.generated.structures import COMMON, KINDS, draw_structure


@dataclass
class Program:
    """`kinds` say what it is made of, `by_rules` how often default rules should schedule it."""

    text: str
    arrays: dict[str, np.ndarray]
    sizes: dict[str, int]
    expected: dict[str, np.ndarray]
    kinds: list[str]
    by_rules: float


def draw_program(rng: Random, *, special: bool = False) -> Program:
    """A program; where `special`, over floats with NaN, infinities and negative zeros."""
    dtype = rng.choice(FLOATS if special else (*FLOATS, *FLOATS, *INTS))
    data = Data(rng, dtype, special=special)
    is_common = rng.random() < 0.3
    kind, structure = draw_structure(rng, data.size, COMMON if is_common else KINDS)
    expressions = Expressions(rng, dtype, special=special)
    draw = Statements(rng, structure, data, expressions, is_common=is_common)
    axes = [
        *structure.declared,
        f"M = T.sp.dense_fixed({size_of(data, structure.row, 'm', structure.rows)})",
        f"N = T.sp.dense_fixed({size_of(data, structure.column, 'n', structure.columns)})",
        f"K = T.sp.dense_fixed({data.size('kk', draw.extents['k'])})",
        f"L = T.sp.dense_fixed({data.size('ll', draw.extents['l'])})",
    ]
    choices = ["reduction"] * 5 + ["elementwise"] * 3 + ["rowwise"]
    if structure.is_rows_axis and structure.levels[1].parent == "i":
        choices.append("nested")
    kinds = rng.choices(choices, k=rng.choice((1, 1, 1, 2, 2, 3)))
    if is_common:
        kinds = [rng.choice(("product", "sampled"))]
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
    return Program(
        text,
        arrays,
        data.parameters(),
        expected,
        [kind, dtype, *kinds],
        by_rules=0.8 if is_common else 0.4,
    )


def size_of(data: Data, coordinate: str, name: str, value: int) -> str:
    """The size of a dense axis: that of the level whose coordinates it has, or one of its own, so
    that nothing proves their accesses in bounds."""
    is_level = coordinate.isidentifier() and data.rng.random() < 0.7
    return data.size(f"{coordinate}_len" if is_level else name, value)
