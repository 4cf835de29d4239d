"""Random bodies: reductions to rows, columns, pairs of them or a level's elements; values for each
element; dense results; nested iterations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from tests.generated.data import Data
from tests.generated.expressions import Env, Expressions, Value
from tests.generated.oracle import REDUCERS, Assign, Reduce
from tests.generated.structures import Structure, names_in

Loop = tuple[str, str, str | None]
"""An axis, its variable, and the variable that it has to stand behind."""


@dataclass
class Statement:
    lines: list[str]
    apply: Callable[[Env], None]


@dataclass
class Target:
    """What is stored to: axes and index as text, shape, keys of the environment, variables."""

    stem: str
    axes: list[str]
    index: list[str]
    shape: tuple[int, ...]
    at: list[str]
    vars: set[str]


class Statements:
    """Draws statements over one structure; what they store can be read by later ones."""

    def __init__(
        self, rng: Random, structure: Structure, data: Data, draw: Expressions, *, is_common: bool
    ) -> None:
        self.rng, self.structure, self.data, self.draw = rng, structure, data, draw
        features = (1, 4, 8, 16, 17, 32, 33, 70) if is_common else (0, 1, 2, 3, 4, 8, 9, 17, 33)
        self.extents = {"k": rng.choice(features), "l": rng.choice((1, 2, 5))}
        self.change = 0.1 if is_common else 0.4
        is_rows_axis = structure.is_rows_axis and rng.random() < 0.5
        self.row_axis = "I" if is_rows_axis else "M"
        self.of_rows: list[Value] = []
        self.of_elements: list[tuple[int, Value]] = []

    # --- environments

    def env(self, depth: int, features: Sequence[str]) -> Env:
        """Points of an iteration down to a level, with some features."""
        table = self.structure.table(depth)
        return {key: at[:, None, None] for key, at in table.items()} | self.grid(features)

    def grid(self, features: Sequence[str]) -> Env:
        found = {
            "k": np.arange(self.extents["k"])[None, :, None],
            "l": np.arange(self.extents["l"])[None, None, :],
        }
        return {name: found[name] for name in features}

    def shape_of(self, names: Sequence[str]) -> tuple[int, ...]:
        return tuple(self.extents[name] for name in names)

    # --- what can be read

    def leaves(self, depth: int, features: Sequence[str]) -> list[Value]:
        """What can be read at an element of a level, -1 being rows by themselves."""
        data, structure = self.data, self.structure
        found = [self.draw.constant()]
        if depth < 0 or depth >= structure.row_level:
            row = structure.row if depth >= 0 else "r"
            found += [
                replace(value, text=value.text.replace("[ROW]", f"[{row}]"))
                for value in self.of_rows
            ]
            found.append(data.load(data.once("S", "M", (structure.rows,)), row, "row"))
        found += [value for level, value in self.of_elements if level <= depth]
        for level in range(max(depth - 1, 0), depth + 1):
            found += [self.stored("AEFG"[level], level)] * (3 if level == depth else 1)
        if depth >= structure.column_level:
            found += self.columnwise(features)
        if "k" in features:
            found.append(data.load(data.once("G", "K", self.shape_of("k")), "k", "k"))
        if {"k", "l"} <= set(features):
            found.append(data.load(data.once("H", "K, L", self.shape_of("kl")), "k, l", "k", "l"))
        return found

    def stored(self, stem: str, level: int) -> Value:
        """A value stored for each element of a level."""
        axes, index = self.structure.access(level)
        found = self.structure.levels[level]
        name = self.data.once(f"{stem}V", axes, (found.storage,))
        return self.data.load(name, index, f"at_{found.var}")

    def columnwise(self, features: Sequence[str]) -> list[Value]:
        data, column, count = self.data, self.structure.column, self.structure.columns
        x = data.once("X", "N", (count,))
        found = [data.load(x, column, "column"), data.gathered(x, column, count)]
        if "k" in features:
            b = data.once("B", "N, K", (count, self.extents["k"]))
            found += [data.load(b, f"{column}, k", "column", "k")] * 3
        if "k" in features and self.structure.row_level <= len(self.structure.levels) - 1:
            d = data.once("D", f"{self.row_axis}, K", (self.structure.rows, self.extents["k"]))
            if self.structure.row_level <= self.structure.column_level:
                found += [data.load(d, f"{self.structure.row}, k", "row", "k")] * 2
        return found

    # --- iterations

    def iteration(
        self, name: str, loops: Sequence[Loop], kinds: Sequence[str], lines: list[str]
    ) -> list[str]:
        """A sparse iteration in some legal order, sometimes over fused axes."""
        order = list(zip(loops, kinds, strict=True))
        if self.rng.random() < self.change:
            order = self.shuffled(order)
        axes = ", ".join(self.fused([axis for (axis, _, _), _ in order], order))
        names = ", ".join(var for (_, var, _), _ in order)
        letters = "".join(letter for _, letter in order)
        head = f'with T.sp.iteration([{axes}], "{letters}", "{name}") as [{names}]:'
        return [head, *(f"    {line}" for line in lines)]

    def fused(self, axes: list[str], order: list[tuple[Loop, str]]) -> list[str]:
        """Axes side by side, each the child of the one before, as `T.sp.fuse(...)`."""
        parents = [parent for (_, _, parent), _ in order]
        chains = [
            (start, end)
            for start in range(len(axes))
            for end in range(start + 2, len(axes) + 1)
            if all(
                parents[at] is not None and parents[at] == axes[at - 1].lower()
                for at in range(start + 1, end)
            )
        ]
        if not chains or self.rng.random() > self.change:
            return axes
        start, end = self.rng.choice(chains)
        return [*axes[:start], f"T.sp.fuse({', '.join(axes[start:end])})", *axes[end:]]

    def shuffled(self, order: list[tuple[Loop, str]]) -> list[tuple[Loop, str]]:
        left, done = list(order), []
        while left:
            ready = [e for e in left if e[0][2] in (None, *(d[0][1] for d in done))]
            done.append(self.rng.choice(ready))
            left.remove(done[-1])
        return done

    def loops(self, depth: int, features: Sequence[str]) -> list[Loop]:
        levels = self.structure.levels[: depth + 1]
        found: list[Loop] = [(level.axis, level.var, level.parent) for level in levels]
        return [*found, *((name.upper(), name, None) for name in features)]

    def features(self) -> list[str]:
        return self.rng.choice(([], [], ["k"], ["k"], ["k"], ["k", "l"], ["l", "k"]))

    # --- targets

    def target(self, kind: str, kept: Sequence[str]) -> Target:
        """Where a reduction goes, with the features that are kept."""
        structure, vars = self.structure, set(kept)
        parts: list[tuple[str, str, int, str]] = []
        if kind in ("row", "pair"):
            axis = self.row_axis if kind == "row" else "M"
            parts.append((axis, structure.row, structure.rows, "row"))
            vars |= names_in(structure.row)
        if kind in ("column", "pair"):
            parts.append(("N", structure.column, structure.columns, "column"))
            vars |= names_in(structure.column)
        if kind == "level":
            depth = self.rng.randrange(len(structure.levels))
            axes, index = structure.access(depth)
            level = structure.levels[depth]
            parts.append((axes, index, level.storage, f"at_{level.var}"))
            vars |= {found.var for found in structure.levels[: depth + 1]}
        parts += [(name.upper(), name, self.extents[name], name) for name in kept]
        axes_, index_, shape, at = zip(*parts, strict=True)
        return Target("C", list(axes_), list(index_), shape, list(at), vars)

    # --- statements

    def reduction(self, name: str) -> Statement:
        """Over all elements, keeping some features and reducing the others."""
        rng, depth = self.rng, len(self.structure.levels) - 1
        features = self.features()
        kept = [f for f in features if rng.random() < 0.8]
        kind = rng.choice(("row",) * 5 + ("column", "pair", "level", "level"))
        target = self.target(kind, kept)
        loops = self.loops(depth, features)
        kinds = ["S" if var in target.vars or rng.random() < 0.1 else "R" for _, var, _ in loops]
        kinds = [
            "R" if var in features and var not in kept else letter
            for (_, var, _), letter in zip(loops, kinds, strict=True)
        ]
        has_init = rng.random() < 0.75
        visited = self.visited(target, kept)
        places = len(np.unique(visited[target.at[0]])) if visited else 0
        covers = kind == "row" and not kept and places == self.structure.rows
        is_allocated = has_init and covers and rng.random() < 0.5
        out = self.data.buffer(
            target.stem, ", ".join(target.axes), target.shape, handle=not is_allocated
        )
        op = rng.choice(("add", "add", "add", "mul", "min", "max"))
        scope = {var for _, var, _ in loops}
        value = self.draw.value(scope, self.leaves(depth, features), rng.choice((1, 2, 2, 3)))
        value = self.as_sign(value) if op == "mul" else value
        number = REDUCERS[op][2] if rng.random() < 0.6 else 1
        stored = f"{out}[{', '.join(target.index)}]"
        lines = self.reducing(name, stored, op, value)
        if has_init:
            lines = ["with T.init():", f"    {stored} = T.{self.data.dtype}({number})", *lines]
        start = number if has_init else None
        meaning = Reduce(out, target.at, value, self.env(depth, features), op, start, visited)
        if kind == "row" and not kept and value.bound <= 64:
            self.of_rows.append(Value(f"{out}[ROW]", self.data.load(out, "", "row").at, 64))
        return Statement(self.iteration(name, loops, kinds, lines), meaning.apply)

    def visited(self, target: Target, kept: Sequence[str]) -> Env:
        """What an init visits: the points of the variables that select the element."""
        table = self.structure.points(target.vars - set(kept))
        return {key: at[:, None, None] for key, at in table.items()} | self.grid(kept)

    def as_sign(self, inner: Value) -> Value:
        return Value(
            f"T.Select({inner.text} > 0, T.{self.data.dtype}(2), T.{self.data.dtype}(-1))",
            lambda e, m: np.where(inner.at(e, m) > 0, 2, -1),
            2,
        )

    def reducing(self, name: str, stored: str, op: str, value: Value) -> list[str]:
        text = REDUCERS[op][0]
        if self.rng.random() < 0.2:
            return [f"t_{name} = {value.text}", f"{stored} = {text.format(stored, f't_{name}')}"]
        sides = [stored, value.text]
        if self.rng.random() < 0.2:
            sides.reverse()
        return [f"{stored} = {text.format(*sides)}"]

    def elementwise(self, name: str) -> Statement:
        """A value for each element of a level, with features kept or reduced."""
        rng = self.rng
        depth = rng.choice((len(self.structure.levels) - 1,) * 2 + (rng.randrange(3),))
        depth = min(depth, len(self.structure.levels) - 1)
        features = rng.choice(([], ["k"], ["k"]))
        is_sum = bool(features) and rng.random() < 0.6
        kept = [] if is_sum else features
        level = self.structure.levels[depth]
        axes, index = self.structure.access(depth)
        shape = (level.storage, *self.shape_of(kept))
        out = self.data.buffer("E", ", ".join([axes, *(f.upper() for f in kept)]), shape)
        stored, at = f"{out}[{', '.join([index, *kept])}]", [f"at_{level.var}", *kept]
        loops = self.loops(depth, features)
        scope = {var for _, var, _ in loops}
        value = self.draw.value(scope, self.leaves(depth, features), rng.choice((1, 2, 3)))
        kinds = ["R" if var in features and is_sum else "S" for _, var, _ in loops]
        env = self.env(depth, features)
        if not is_sum:
            if not kept and value.bound <= 64:
                self.of_elements.append(
                    (depth, Value(stored, self.data.load(out, "", at[0]).at, 64))
                )
            lines = [f"{stored} = {value.text}"]
            meaning = Assign(out, at, value, env)
            return Statement(self.iteration(name, loops, kinds, lines), meaning.apply)
        op = rng.choice(("add", "add", "min", "max"))
        lines = self.reducing(name, stored, op, value)
        start = REDUCERS[op][2] if rng.random() < 0.7 else None
        if start is not None:
            lines = ["with T.init():", f"    {stored} = T.{self.data.dtype}({start})", *lines]
        reduce = Reduce(out, at, value, env, op, start, self.env(depth, []))
        return Statement(self.iteration(name, loops, kinds, lines), reduce.apply)

    def product(self, name: str) -> Statement:
        """What default rules look for: a sum over a fibre of values times rows of a dense operand."""
        data, structure = self.data, self.structure
        depth, kept = len(structure.levels) - 1, self.rng.choice((["k"], ["k"], []))
        target = self.target("row", kept)
        a = self.stored("AEFG"[depth], depth)
        column, count = structure.column, structure.columns
        x = data.load(data.once("X", "N", (count,)), column, "column")
        if kept:
            b = data.once("B", "N, K", (count, self.extents["k"]))
            x = data.load(b, f"{column}, k", "column", "k")
        value = self.rng.choice((a, self.draw.of_mul(lambda: x, set(), [])))
        value = self.draw.binary("({} * {})", np.multiply, a, x, 16) if kept else value
        out = data.buffer("C", ", ".join(target.axes), target.shape)
        stored, op = f"{out}[{', '.join(target.index)}]", self.rng.choice(("add", "add", "max"))
        start = REDUCERS[op][2]
        text = REDUCERS[op][0].format(stored, value.text)
        lines = ["with T.init():", f"    {stored} = T.{data.dtype}({start})", f"{stored} = {text}"]
        loops = self.loops(depth, kept)
        kinds = ["S" if var in target.vars else "R" for _, var, _ in loops]
        visited = self.visited(target, kept)
        meaning = Reduce(out, target.at, value, self.env(depth, kept), op, start, visited)
        return Statement(self.iteration(name, loops, kinds, lines), meaning.apply)

    def sampled(self, name: str) -> Statement:
        """Products of rows of two dense operands for each element, as default rules look for them."""
        data, structure, rng = self.data, self.structure, self.rng
        depth = len(structure.levels) - 1
        level, (axes, index) = structure.levels[depth], structure.access(depth)
        d = data.once("D", f"{self.row_axis}, K", (structure.rows, self.extents["k"]))
        b = data.once("B", "N, K", (structure.columns, self.extents["k"]))
        sides = [
            data.load(d, f"{structure.row}, k", "row", "k"),
            data.load(b, f"{structure.column}, k", "column", "k"),
        ]
        rng.shuffle(sides)
        value = self.draw.binary("({} * {})", np.multiply, *sides, 16)
        if rng.random() < 0.4:
            a = self.stored("AEFG"[depth], depth)
            value = self.draw.binary("({} * {})", np.multiply, value, a, 64)
        out = data.buffer("E", axes, (level.storage,))
        stored, op = f"{out}[{index}]", rng.choice(("add", "add", "min", "max"))
        start = REDUCERS[op][2]
        text = REDUCERS[op][0].format(stored, value.text)
        lines = ["with T.init():", f"    {stored} = T.{data.dtype}({start})", f"{stored} = {text}"]
        loops = self.loops(depth, ["k"])
        kinds = ["R" if var == "k" else "S" for _, var, _ in loops]
        at, env = [f"at_{level.var}"], self.env(depth, ["k"])
        meaning = Reduce(out, at, value, env, op, start, self.env(depth, []))
        return Statement(self.iteration(name, loops, kinds, lines), meaning.apply)

    def rowwise(self, name: str) -> Statement:
        """A dense result of what is known of each row."""
        features = self.rng.choice((["k"], ["k"], ["k", "l"], []))
        shape = (self.structure.rows, *self.shape_of(features))
        out = self.data.buffer("R", ", ".join(["M", *(f.upper() for f in features)]), shape)
        scope = {"r", *features}
        value = self.draw.value(scope, self.leaves(-1, features), self.rng.choice((1, 2)))
        loops: list[Loop] = [("M", "r", None), *((f.upper(), f, None) for f in features)]
        rows = np.arange(self.structure.rows)[:, None, None]
        env = {"row": rows, "r": rows, **self.grid(features)}
        lines = [f"{out}[{', '.join(['r', *features])}] = {value.text}"]
        meaning = Assign(out, ["row", *features], value, env)
        return Statement(self.iteration(name, loops, ["S"] * len(loops), lines), meaning.apply)

    def nested(self, name: str) -> Statement:
        """Each fibre of level 1: its largest value, then what the values less that one add up to."""
        structure, data = self.structure, self.data
        below = self.stored("E", 1)
        a = below.text.partition("[")[0]
        rows = structure.levels[0].storage
        top = data.buffer("U", "I", (rows,), handle=self.rng.random() < 0.4)
        total = data.buffer("V", "I", (rows,))
        low = -100
        lines = [
            f'with T.sp.iteration([I], "S", "{name}") as [i]:',
            f'    with T.sp.iteration([J], "R", "{name}_top") as [j]:',
            "        with T.init():",
            f"            {top}[i] = T.{data.dtype}({low})",
            f"        {top}[i] = T.max({top}[i], {a}[i, j])",
            f'    with T.sp.iteration([J], "R", "{name}_sum") as [j]:',
            "        with T.init():",
            f"            {total}[i] = T.{data.dtype}(0)",
            f"        {total}[i] = {total}[i] + ({a}[i, j] - {top}[i])",
        ]

        def apply(memory: Env) -> None:
            table = structure.table(1)
            row, values = table["i"], memory[a][table["at_j"]]
            memory[top][:] = low
            np.maximum.at(memory[top], row, values)
            memory[total][:] = 0
            np.add.at(memory[total], row, values - memory[top][row])

        return Statement(lines, apply)
