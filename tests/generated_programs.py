"""Random programs at the coordinate stage with data, and what they mean according to NumPy alone.

A program is a script over one sparse structure. Its oracle lists the elements of the structure and
evaluates each statement for all of them at once: E elements by K by L features, in float64 or int64.
Values are small integers (and halves of them), so that every order of a sum gives the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import numpy as np

Env = dict[str, np.ndarray]
"""Coordinates of the elements by variable, shaped (E, 1, 1), (1, K, 1), (1, 1, L), (rows, 1, 1)."""
FLOATS, INTS = ("float32", "float64"), ("int32", "int64")
ROW_LENGTHS = (0, 0, 0, 1, 1, 2, 3, 4, 7, 9, 17)


@dataclass
class Structure:
    """A sparse operand: `declared` axes, iterated as (axis, variable, parent's variable)."""

    declared: list[str]
    loops: list[tuple[str, str, str | None]]
    spatial: set[str]
    access: tuple[str, str]
    row: tuple[str, np.ndarray]
    column: tuple[str, np.ndarray]
    coordinates: Env
    position: np.ndarray
    storage: int
    visited: np.ndarray
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    is_rows_axis: bool = True


@dataclass
class Value:
    """An expression as text and as a function; no result is larger than `bound`."""

    text: str
    at: Callable[[Env, Env], np.ndarray]
    bound: float


@dataclass
class Statement:
    lines: list[str]
    apply: Callable[[Env], None]


@dataclass
class Program:
    text: str
    arrays: dict[str, np.ndarray]
    sizes: dict[str, int]
    expected: dict[str, np.ndarray]
    kinds: list[str]


# --- structures


def pattern(rng: Random, rows: int, columns: int, *, is_plain: bool) -> list[list[int]]:
    """The columns of each row: empty rows at both ends, dense rows, duplicates, any order."""
    found = []
    for _ in range(rows):
        length = columns if rng.random() < 0.1 else rng.choice(ROW_LENGTHS)
        drawn = rng.sample(range(columns), min(length, columns))
        if not is_plain and columns:
            drawn = [rng.randrange(columns) for _ in range(length)]
        found.append(sorted(drawn) if is_plain else drawn)
    for row in {0, rows - 1} if rows and rng.random() < 0.4 else ():
        found[row] = []
    return found


def entries(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Prefix sums of the lengths, and the row and column of each element."""
    lengths = [len(row) for row in rows]
    row = np.repeat(np.arange(len(rows)), lengths).astype(np.int64)
    return np.cumsum([0, *lengths]), row, np.array([c for r in rows for c in r], np.int64)


def csr(rng: Random, m: int, n: int, size: Callable[[str, int], str]) -> Structure:
    is_plain, index = rng.random() < 0.5, rng.choice(INTS)
    indptr, row, column = entries(pattern(rng, m, n, is_plain=is_plain))
    flags = "" if is_plain else ", sorted=False, unique=False"
    shape = f"({size('n', n)}, {size('nnz', len(row))})"
    return Structure(
        [f"I = T.sp.dense_fixed({size('m', m)})",
         f'J = T.sp.compressed_varied(I, {shape}, (indptr, indices), "{index}"{flags})'],
        [("I", "i", None), ("J", "j", "i")], {"i"}, ("(I, J)", "i, j"),
        ("i", row), ("j", column), {"i": row, "j": column}, np.arange(len(row)), len(row),
        np.arange(m), {"indptr": indptr.astype(index), "indices": column.astype(index)},
    )  # fmt: skip


def ell(rng: Random, m: int, n: int, size: Callable[[str, int], str]) -> Structure:
    found = pattern(rng, m, n, is_plain=True)
    _, row, column = entries(found)
    width = max([len(r) for r in found], default=0) + rng.choice((0, 0, 1, 3))
    index = rng.choice(INTS)
    slots = np.full((m, width), n, index)
    for at, columns in enumerate(found):
        slots[at, : len(columns)] = columns
    position = np.flatnonzero(slots.reshape(-1) < n)
    shape = f"({size('n', n)}, {size('width', width)})"
    return Structure(
        [f"I = T.sp.dense_fixed({size('m', m)})",
         f'J = T.sp.compressed_fixed(I, {shape}, indices, "{index}")'],
        [("I", "i", None), ("J", "j", "i")], {"i"}, ("(I, J)", "i, j"),
        ("i", row), ("j", column), {"i": row, "j": column}, position, m * width,
        np.arange(m), {"indices": slots},
    )  # fmt: skip


def ragged(rng: Random, m: int, n: int, size: Callable[[str, int], str]) -> Structure:
    lengths = [min(rng.choice(ROW_LENGTHS), n) for _ in range(m)]
    indptr, row, column = entries([list(range(length)) for length in lengths])
    index = rng.choice(INTS)
    shape = f"({size('n', n)}, {size('nnz', len(row))})"
    return Structure(
        [f"I = T.sp.dense_fixed({size('m', m)})",
         f'J = T.sp.dense_varied(I, {shape}, indptr, "{index}")'],
        [("I", "i", None), ("J", "j", "i")], {"i"}, ("(I, J)", "i, j"),
        ("i", row), ("j", column), {"i": row, "j": column}, np.arange(len(row)), len(row),
        np.arange(m), {"indptr": indptr.astype(index)},
    )  # fmt: skip


def dense(rng: Random, m: int, n: int, size: Callable[[str, int], str]) -> Structure:
    _, row, column = entries([list(range(n))] * m)
    return Structure(
        [f"I = T.sp.dense_fixed({size('m', m)})", f"J = T.sp.dense_fixed({size('n', n)})"],
        [("I", "i", None), ("J", "j", None)], {"i"}, ("(I, J)", "i, j"),
        ("i", row), ("j", column), {"i": row, "j": column}, np.arange(m * n), m * n, np.arange(m),
    )  # fmt: skip


def dcsr(rng: Random, m: int, n: int, size: Callable[[str, int], str]) -> Structure:
    kept = sorted(rng.sample(range(m), rng.randint(0, m)))
    indptr, at, column = entries(pattern(rng, len(kept), n, is_plain=True))
    row, index = np.array(kept, np.int64)[at], rng.choice(INTS)
    rows = f"({size('m', m)}, {size('nrows', len(kept))})"
    shape = f"({size('n', n)}, {size('nnz', len(row))})"
    return Structure(
        ["O = T.sp.dense_fixed(1)",
         f'I = T.sp.compressed_varied(O, {rows}, (indptr_i, indices_i), "{index}")',
         f'J = T.sp.compressed_varied(I, {shape}, (indptr, indices), "{index}")'],
        [("O", "o", None), ("I", "i", "o"), ("J", "j", "i")], {"o", "i"}, ("(O, I, J)", "o, i, j"),
        ("i", row), ("j", column), {"o": 0 * row, "i": row, "j": column},
        np.arange(len(row)), len(row), np.array(kept, np.int64),
        {"indptr_i": np.array([0, len(kept)], index), "indices_i": np.array(kept, index),
         "indptr": indptr.astype(index), "indices": column.astype(index)}, is_rows_axis=False,
    )  # fmt: skip


def bsr(rng: Random, m: int, n: int, size: Callable[[str, int], str]) -> Structure:
    high, wide = rng.choice((1, 2, 3)), rng.choice((1, 2, 4))
    mb, nb = m // high, n // wide
    indptr, row, column = entries(pattern(rng, mb, nb, is_plain=True))
    index, blocks = rng.choice(INTS), len(row)
    grid = np.indices((blocks, high, wide)).reshape(3, -1)
    i, j, bi, bj = row[grid[0]], column[grid[0]], grid[1], grid[2]
    return Structure(
        [f"I = T.sp.dense_fixed({size('mb', mb)})",
         f"J = T.sp.compressed_varied(I, ({size('nb', nb)}, {size('nnzb', blocks)}), "
         f'(indptr, indices), "{index}")',
         f"BI = T.sp.dense_fixed({high})", f"BJ = T.sp.dense_fixed({wide})"],
        [("I", "i", None), ("BI", "bi", None), ("J", "j", "i"), ("BJ", "bj", None)], {"i", "bi"},
        ("(I, J, BI, BJ)", "i, j, bi, bj"), (f"i * {high} + bi", i * high + bi),
        (f"j * {wide} + bj", j * wide + bj), {"i": i, "j": j, "bi": bi, "bj": bj},
        np.arange(grid.shape[1]), grid.shape[1], np.arange(mb * high),
        {"indptr": indptr.astype(index), "indices": column.astype(index)}, is_rows_axis=False,
    )  # fmt: skip


STRUCTURES = {"csr": csr, "ell": ell, "ragged": ragged, "dense": dense, "dcsr": dcsr, "bsr": bsr}


# --- the program


class Generator:
    """Draws one program; `rng` is any `random.Random`."""

    def __init__(self, rng: Random, *, special: bool = False) -> None:
        self.rng = rng
        self.special = special
        self.dtype = rng.choice(FLOATS if special else (*FLOATS, *FLOATS, *INTS))
        self.wide = np.float64 if self.dtype in FLOATS else np.int64
        self.sizes: dict[str, int] = {}
        self.memory: Env = {}
        self.arrays: dict[str, np.ndarray] = {}
        self.declared: list[str] = []
        self.readable: dict[str, list[Value]] = {"row": [], "element": []}
        self.fresh = 0
        m, n = (rng.choice((0, 1, 2, 3, 5, 8, 11, 19)) for _ in range(2))
        self.kind = rng.choice(("csr", "csr", "csr", "csr", *STRUCTURES))
        self.structure = STRUCTURES[self.kind](rng, m, n, self.size)
        self.rows, self.columns = m, n
        self.k, self.l = (rng.choice((0, 1, 2, 3, 4, 8, 9, 17)), rng.choice((1, 2, 5)))
        self.axes = [
            *self.structure.declared,
            f"M = T.sp.dense_fixed({self.size('m', m)})",
            f"N = T.sp.dense_fixed({self.size('n', n)})",
            f"K = T.sp.dense_fixed({self.size('kk', self.k)})",
            f"L = T.sp.dense_fixed({self.size('ll', self.l)})",
        ]
        self.row_axis = rng.choice(("I", "M")) if self.structure.is_rows_axis else "M"
        self.grid = {
            **{name: at[:, None, None] for name, at in self.structure.coordinates.items()},
            "row": self.structure.row[1][:, None, None],
            "column": self.structure.column[1][:, None, None],
            "element": self.structure.position[:, None, None],
            "k": np.arange(self.k)[None, :, None],
            "l": np.arange(self.l)[None, None, :],
        }

    def size(self, name: str, value: int) -> str:
        """A size as a parameter or as a number; the same each time."""
        if name not in self.sizes:
            self.sizes[name] = value if self.rng.random() < 0.7 else -1
        return str(value) if self.sizes[name] < 0 else name

    def integers(self, count: int, low: int = -3, high: int = 4) -> np.ndarray:
        drawn = [self.rng.randint(low, high) for _ in range(count)]
        found = np.array(drawn, self.dtype)
        if self.special and count:
            for _ in range(self.rng.randint(0, 3)):
                found[self.rng.randrange(count)] = self.rng.choice((np.nan, np.inf, -np.inf, -0.0))
        return found

    def buffer(self, stem: str, axes: str, shape: tuple[int, ...], *, handle: bool = True) -> str:
        """Declares a buffer of values with random contents, or one that the program allocates."""
        self.fresh += 1
        name = f"{stem}{self.fresh}"
        values = self.integers(int(np.prod(shape))).reshape(shape)
        self.memory[name] = values.astype(self.wide)
        if handle:
            self.arrays[name.lower()] = values
            text = f'T.sp.match_buffer({name.lower()}, {axes}, "{self.dtype}")'
        else:
            text = f'T.sp.alloc_buffer({axes}, "{self.dtype}")'
        self.declared.append(f"{name} = {text}")
        return name

    # --- expressions

    def load(self, name: str, index: str, *at: str) -> Value:
        def value(env: Env, memory: Env) -> np.ndarray:
            return memory[name][tuple(env[key] for key in at)]

        return Value(f"{name}[{index}]", value, 4)

    def leaves(self, scope: set[str], *, has_elements: bool) -> list[Value]:
        """What can be read where the variables in scope are bound."""
        row_text, column_text = self.structure.row[0], self.structure.column[0]
        row = row_text if has_elements else "r"
        found = [self.constant()]
        found += self.readable["row"]
        found.append(self.load(self.once("S", "(M,)", (self.rows,)), row, "row"))
        if has_elements:
            found += self.readable["element"]
            x, a = (
                self.once("X", "(N,)", (self.columns,)),
                self.once("A", self.structure.access[0], (self.structure.storage,)),
            )
            found.append(self.load(x, column_text, "column"))
            found += [self.load(a, self.structure.access[1], "element")] * 3
            found.append(self.gather(x, column_text))
        if "k" in scope:
            found.append(self.load(self.once("G", "(K,)", (self.k,)), "k", "k"))
            if has_elements:
                b = self.once("B", "(N, K)", (self.columns, self.k))
                found += [self.load(b, f"{column_text}, k", "column", "k")] * 3
        if {"k", "l"} <= scope:
            h = self.once("H", "(K, L)", (self.k, self.l))
            found.append(self.load(h, "k, l", "k", "l"))
        return found

    def once(self, stem: str, axes: str, shape: tuple[int, ...]) -> str:
        for name in self.memory:
            if name.startswith(stem):
                return name
        return self.buffer(stem, axes, shape)

    def gather(self, name: str, column: str) -> Value:
        """A load through a permutation, which nothing proves in bounds."""
        if "p" not in self.arrays:
            permutation = np.array(self.rng.sample(range(self.columns), self.columns), np.int32)
            self.arrays["p"] = permutation
            self.declared.append('P = T.sp.match_buffer(p, (N,), "int32")')
        at = self.arrays["p"]
        return Value(
            f"{name}[T.int64(P[{column}])]", lambda env, memory: memory[name][at[env["column"]]], 4
        )

    def constant(self) -> Value:
        number = self.rng.randint(-2, 3)
        return Value(f"T.{self.dtype}({number})", lambda env, memory: self.wide(number), 4)

    def coordinate(self, scope: set[str]) -> Value:
        name = self.rng.choice(sorted(scope))
        key = {"r": "row"}.get(name, name)
        return Value(name, lambda env, memory: env[key].astype(np.int64), 20)

    def condition(self, scope: set[str], leaves: list[Value], depth: int) -> Value:
        rng = self.rng
        if rng.random() < 0.25 and depth:
            left = self.condition(scope, leaves, depth - 1)
            if rng.random() < 0.3:
                return Value(f"(not {left.text})", lambda e, m: ~left.at(e, m), 1)
            right = self.condition(scope, leaves, depth - 1)
            word, function = rng.choice((("and", np.logical_and), ("or", np.logical_or)))
            return Value(
                f"({left.text} {word} {right.text})",
                lambda e, m: function(left.at(e, m), right.at(e, m)),
                1,
            )
        op, compare = rng.choice(COMPARISONS)
        if rng.random() < 0.5 and scope:
            left, right = self.coordinate(scope), self.coordinate(scope)
            if rng.random() < 0.5:
                bound = rng.randint(0, 6)
                right = Value(f"T.int64({bound})", lambda e, m: np.int64(bound), 20)
            if rng.random() < 0.3:
                whole, by = left, rng.choice((2, 3))
                left = Value(f"{whole.text} % {by}", lambda e, m: whole.at(e, m) % by, 20)
        else:
            left, right = self.value(scope, leaves, depth), self.value(scope, leaves, 0)
        return Value(
            f"({left.text} {op} {right.text})",
            lambda e, m: np.asarray(compare(left.at(e, m), right.at(e, m))),
            1,
        )

    def value(self, scope: set[str], leaves: list[Value], depth: int) -> Value:
        rng = self.rng
        if depth == 0 or rng.random() < 0.15:
            return rng.choice(leaves)
        kinds = ["mul", "mul", "mul", "add", "sub", "min", "max", "select", "lazy", "neg", "abs"]
        kinds += ["coordinate"] if scope else []
        if self.dtype in INTS:
            kinds += ["floordiv", "floormod", "bitand", "shl", "narrow"]
        else:
            kinds += ["half", "floor", "fma", "wider"] + ([] if self.special else ["truncate"])
        return getattr(self, f"of_{rng.choice(kinds)}")(
            lambda: self.value(scope, leaves, depth - 1), scope, leaves
        )

    def binary(self, op: str, function, left: Value, right: Value, bound: float) -> Value:
        return Value(
            op.format(left.text, right.text),
            lambda e, m: function(left.at(e, m), right.at(e, m)),
            bound,
        )

    def unary(self, op: str, function, inner: Value, bound: float) -> Value:
        return Value(op.format(inner.text), lambda e, m: function(inner.at(e, m)), bound)

    def of_mul(self, draw, scope, leaves):
        left, right = draw(), draw()
        if left.bound * right.bound > 512:
            return self.of_add(lambda: left, scope, leaves)
        return self.binary("({} * {})", np.multiply, left, right, left.bound * right.bound)

    def of_add(self, draw, scope, leaves):
        left, right = draw(), draw()
        return self.binary("({} + {})", np.add, left, right, left.bound + right.bound)

    def of_sub(self, draw, scope, leaves):
        left, right = draw(), draw()
        return self.binary("({} - {})", np.subtract, left, right, left.bound + right.bound)

    def of_min(self, draw, scope, leaves):
        left, right = draw(), draw()
        return self.binary("T.min({}, {})", np.minimum, left, right, max(left.bound, right.bound))

    def of_max(self, draw, scope, leaves):
        left, right = draw(), draw()
        return self.binary("T.max({}, {})", np.maximum, left, right, max(left.bound, right.bound))

    def of_select(self, draw, scope, leaves, word="T.Select"):
        condition = self.condition(scope, leaves, 1)
        left, right = draw(), draw()
        return Value(
            f"{word}({condition.text}, {left.text}, {right.text})",
            lambda e, m: np.where(condition.at(e, m), left.at(e, m), right.at(e, m)),
            max(left.bound, right.bound),
        )

    def of_lazy(self, draw, scope, leaves):
        return self.of_select(draw, scope, leaves, "T.if_then_else")

    def of_neg(self, draw, scope, leaves):
        inner = draw()
        return self.unary("(-{})", np.negative, inner, inner.bound)

    def of_abs(self, draw, scope, leaves):
        inner = draw()
        return self.unary("T.abs({})", np.abs, inner, inner.bound)

    def of_coordinate(self, draw, scope, leaves):
        found = self.coordinate(scope)
        return self.unary(f"T.{self.dtype}({{}})", lambda x: x.astype(self.wide), found, 20)

    def of_floordiv(self, draw, scope, leaves):
        inner, by = draw(), self.rng.choice((2, 3, -2))
        return self.unary(f"({{}} // {by})", lambda x: x // by, inner, inner.bound)

    def of_floormod(self, draw, scope, leaves):
        inner, by = draw(), self.rng.choice((2, 3, 4))
        return self.unary(f"({{}} % {by})", lambda x: x % by, inner, 4)

    def of_bitand(self, draw, scope, leaves):
        left, right = draw(), draw()
        return self.binary("({} & {})", np.bitwise_and, left, right, left.bound + right.bound)

    def of_shl(self, draw, scope, leaves):
        inner = draw()
        return self.unary("({} << 1)", lambda x: x * 2, inner, 2 * inner.bound)

    def of_narrow(self, draw, scope, leaves):
        inner = draw()
        wrap = self.rng.choice(("int8", "int16", "uint8", "int32"))
        return self.unary(
            f"T.{self.dtype}(T.{wrap}({{}}))",
            lambda x: np.asarray(x).astype(wrap).astype(np.int64),
            inner,
            max(inner.bound, 256 if wrap == "uint8" else 0),
        )

    def of_half(self, draw, scope, leaves):
        inner = self.rng.choice(leaves)
        return self.unary("({} / 2.0)", lambda x: x / 2, inner, inner.bound)

    def of_floor(self, draw, scope, leaves):
        inner = draw()
        return self.unary("T.floor({})", np.floor, inner, inner.bound + 1)

    def of_fma(self, draw, scope, leaves):
        one, two, three = (self.rng.choice(leaves) for _ in range(3))
        return Value(
            f"T.fma({one.text}, {two.text}, {three.text})",
            lambda e, m: one.at(e, m) * two.at(e, m) + three.at(e, m),
            one.bound * two.bound + three.bound,
        )

    def of_wider(self, draw, scope, leaves):
        inner = draw()
        return self.unary(f"T.{self.dtype}(T.float64({{}}))", lambda x: x, inner, inner.bound)

    def of_truncate(self, draw, scope, leaves):
        inner = draw()
        to = self.rng.choice(INTS)
        return self.unary(f"T.{self.dtype}(T.{to}({{}}))", np.trunc, inner, inner.bound)

    # --- statements

    def iteration(self, name: str, loops, kinds, lines: list[str]) -> list[str]:
        """A sparse iteration over (axis, variable, parent) in some legal order."""
        order = list(zip(loops, kinds, strict=True))
        if self.rng.random() < 0.4:
            order = self.shuffled(order)
        axes = ", ".join(axis for (axis, _, _), _ in order)
        names = ", ".join(var for (_, var, _), _ in order)
        letters = "".join(letter for _, letter in order)
        head = f'with T.sp.iteration([{axes}], "{letters}", "{name}") as [{names}]:'
        return [head, *(f"    {line}" for line in lines)]

    def shuffled(self, order):
        left, done = list(order), []
        while left:
            ready = [e for e in left if e[0][2] in (None, *(d[0][1] for d in done))]
            done.append(self.rng.choice(ready))
            left.remove(done[-1])
        return done

    def features(self) -> list[str]:
        return self.rng.choice(([], [], ["k"], ["k"], ["k"], ["k", "l"], ["l", "k"]))

    def shape_of(self, names: list[str]) -> tuple[int, ...]:
        return tuple({"k": self.k, "l": self.l}[name] for name in names)

    def env(self, names) -> Env:
        """The grid without the features that are not iterated."""
        keep = {"k", "l"} - set(names)
        return {key: at for key, at in self.grid.items() if key not in keep}

    def rows_env(self, names) -> Env:
        env = {key: self.grid[key] for key in names}
        return {**env, "row": np.arange(self.rows)[:, None, None]}

    def reduction(self, name: str) -> Statement:
        """Over rows or columns, keeping some features and reducing the others."""
        rng, structure = self.rng, self.structure
        features = self.features()
        kept = [f for f in features if rng.random() < 0.8]
        by_rows = rng.random() < 0.75
        axis = self.row_axis if by_rows else "N"
        length = self.rows if by_rows else self.columns
        element = structure.row if by_rows else structure.column
        key = "row" if by_rows else "column"
        has_init = rng.random() < 0.75 and (by_rows or rng.random() < 0.3)
        covers = by_rows and len(structure.visited) == self.rows
        is_allocated = has_init and covers and not kept and rng.random() < 0.5
        axes = ", ".join([axis, *(f.upper() for f in kept)])
        shape = (length, *self.shape_of(kept))
        out = self.buffer("C", f"({axes},)", shape, handle=not is_allocated)
        scope = {*(var for _, var, _ in structure.loops), *features}
        loops = [*structure.loops, *((f.upper(), f, None) for f in features)]
        spatial = {*structure.spatial, *kept} if by_rows else set(kept)
        kinds = ["S" if var in spatial else "R" for _, var, _ in loops]
        if not by_rows and has_init:
            kinds = ["S" if var in {"j", "bj", *kept} else letter
                     for (_, var, _), letter in zip(loops, kinds, strict=True)]  # fmt: skip
        leaves = self.leaves(scope, has_elements=True)
        op, text, ufunc, neutral = rng.choice(REDUCERS)
        value = self.value(scope, leaves, rng.choice((1, 2, 2, 3)))
        if op == "mul":
            inner = value
            value = Value(
                f"T.Select({inner.text} > 0, T.{self.dtype}(2), T.{self.dtype}(-1))",
                lambda e, m: np.where(inner.at(e, m) > 0, 2, -1),
                2,
            )
        target = f"{out}[{', '.join([element[0], *kept])}]"
        sides = [target, value.text]
        if rng.random() < 0.2:
            sides.reverse()
        lines = [f"{target} = {text.format(*sides)}"]
        if rng.random() < 0.2:
            lines = [f"t_{name} = {value.text}", f"{target} = {text.format(target, f't_{name}')}"]
        start = self.wide(neutral if rng.random() < 0.6 else 1)
        if has_init:
            number = int(start)
            lines = ["with T.init():", f"    {target} = T.{self.dtype}({number})", *lines]
        env = self.env(features)
        visited = structure.visited if by_rows else np.unique(structure.column[1])
        if self.kind == "dense" and not by_rows:
            visited = np.arange(self.columns)

        def apply(memory: Env) -> None:
            result = memory[out]
            where = (env[key], *(env[f] for f in kept))
            if has_init:
                result[np.ix_(visited, *(np.arange(s) for s in self.shape_of(kept)))] = start
            terms = np.asarray(value.at(env, memory), self.wide)
            full = np.broadcast_shapes(*(at.shape for at in env.values()))
            index = tuple(np.broadcast_to(at, full) for at in where)
            ufunc.at(result, index, np.broadcast_to(terms, full))

        if by_rows and not kept:
            found = self.load(out, element[0], "row")
            self.readable["row"].append(Value(found.text, found.at, 64))
            if value.bound > 64:
                self.readable["row"].pop()
        return Statement(self.iteration(name, loops, kinds, lines), apply)

    def elementwise(self, name: str) -> Statement:
        """A value for each element of the structure, with features kept or summed up."""
        rng, structure = self.rng, self.structure
        features = rng.choice(([], ["k"], ["k"]))
        is_sum = bool(features) and rng.random() < 0.6
        kept = [] if is_sum else features
        axes = ", ".join([structure.access[0][1:-1], *(f.upper() for f in kept)])
        out = self.buffer("E", f"({axes})", (structure.storage, *self.shape_of(kept)))
        scope = {*(var for _, var, _ in structure.loops), *features}
        loops = [*structure.loops, *((f.upper(), f, None) for f in features)]
        kinds = ["R" if var in features and is_sum else "S" for _, var, _ in loops]
        value = self.value(scope, self.leaves(scope, has_elements=True), rng.choice((1, 2, 3)))
        target = f"{out}[{', '.join([structure.access[1], *kept])}]"
        init = ["with T.init():", f"    {target} = T.{self.dtype}(0)"]
        has_init = is_sum and rng.random() < 0.7
        lines = [f"{target} = {f'{target} + ' if is_sum else ''}{value.text}"]
        env = self.env(features)

        def apply(memory: Env) -> None:
            result = memory[out]
            full = np.broadcast_shapes(*(at.shape for at in env.values()))
            terms = np.broadcast_to(np.asarray(value.at(env, memory), self.wide), full)
            if is_sum:
                old = 0 if has_init else result[structure.position]
                result[structure.position] = old + terms.sum(axis=(1, 2))
            else:
                result[tuple(env[key] for key in ("element", *kept))] = terms.reshape(
                    env["element"].shape if not kept else full
                )

        if not kept:
            found = self.load(out, structure.access[1], "element")
            self.readable["element"].append(Value(found.text, found.at, 64))
            if value.bound > 64 or is_sum:
                self.readable["element"].pop()
        lines = [*init, *lines] if has_init else lines
        return Statement(self.iteration(name, loops, kinds, lines), apply)

    def rowwise(self, name: str) -> Statement:
        """A dense result of what is known of each row."""
        features = self.rng.choice((["k"], ["k"], ["k", "l"], []))
        axes = ", ".join(["M", *(f.upper() for f in features)])
        out = self.buffer("D", f"({axes},)", (self.rows, *self.shape_of(features)))
        kept_rows, self.readable["row"] = self.readable["row"], [
            Value(v.text.replace(f"[{self.structure.row[0]}]", "[r]"), v.at, v.bound)
            for v in self.readable["row"]
        ]  # fmt: skip
        scope = {"r", *features}
        value = self.value(scope, self.leaves(scope, has_elements=False), self.rng.choice((1, 2)))
        self.readable["row"] = kept_rows
        target = f"{out}[{', '.join(['r', *features])}]"
        loops = [("M", "r", None), *((f.upper(), f, None) for f in features)]
        env = self.rows_env(features)

        def apply(memory: Env) -> None:
            where = (env["row"], *(env[f] for f in features))
            full = np.broadcast_shapes(*(at.shape for at in env.values()))
            index = tuple(np.broadcast_to(at, full) for at in where)
            memory[out][index] = np.broadcast_to(value.at(env, memory), full)

        lines = [f"{target} = {value.text}"]
        return Statement(self.iteration(name, loops, ["S"] * len(loops), lines), apply)

    def nested(self, name: str) -> Statement:
        """Each row: its largest value, then what the values less that one add up to."""
        axes = self.structure.access[0]
        a = self.once("A", axes, (self.structure.storage,))
        is_allocated = self.rng.random() < 0.6
        top = self.buffer("U", "(I,)", (self.rows,), handle=not is_allocated)
        total = self.buffer("V", "(I,)", (self.rows,))
        low = -100
        lines = [
            f'with T.sp.iteration([I], "S", "{name}") as [i]:',
            f'    with T.sp.iteration([J], "R", "{name}_top") as [j]:',
            "        with T.init():",
            f"            {top}[i] = T.{self.dtype}({low})",
            f"        {top}[i] = T.max({top}[i], {a}[i, j])",
            f'    with T.sp.iteration([J], "R", "{name}_sum") as [j]:',
            "        with T.init():",
            f"            {total}[i] = T.{self.dtype}(0)",
            f"        {total}[i] = {total}[i] + ({a}[i, j] - {top}[i])",
        ]

        def apply(memory: Env) -> None:
            row, values = self.structure.row[1], memory[a][self.structure.position]
            memory[top][:] = low
            np.maximum.at(memory[top], row, values)
            memory[total][:] = 0
            np.add.at(memory[total], row, values - memory[top][row])

        return Statement(lines, apply)

    def program(self) -> Program:
        rng = self.rng
        kinds = []
        statements = []
        for at in range(rng.choice((1, 1, 1, 2, 2, 3))):
            choices = ["reduction"] * 5 + ["elementwise"] * 2 + ["rowwise"]
            if self.structure.is_rows_axis:
                choices.append("nested")
            kinds.append(rng.choice(choices))
            statements.append(getattr(self, kinds[-1])(f"step{at}"))
        with np.errstate(all="ignore"):
            for statement in statements:
                statement.apply(self.memory)
        sizes = {name: value for name, value in self.sizes.items() if value >= 0}
        arrays = {**self.arrays, **self.structure.arrays}
        params = [*(f"{name}: T.handle" for name in arrays)]
        params += [f"{name}: T.{rng.choice(INTS)}" for name in sizes]
        rng.shuffle(params)
        lines = [*self.axes, *self.declared, *(line for s in statements for line in s.lines)]
        text = "\n".join(
            [
                "@T.prim_func",
                f"def program({', '.join(params)}) -> None:",
                '    T.func_attr({"sparse_tir_level": 2})',
                *(f"    {line}" for line in lines),
                "",
            ]
        )
        with np.errstate(all="ignore"):
            expected = {
                name.lower(): value.astype(self.dtype)
                for name, value in self.memory.items()
                if name.lower() in self.arrays
            }
        return Program(text, arrays, sizes, expected, [self.kind, self.dtype, *kinds])


COMPARISONS = (
    ("<", np.less), ("<=", np.less_equal), (">", np.greater), (">=", np.greater_equal),
    ("==", np.equal), ("!=", np.not_equal),
)  # fmt: skip
REDUCERS = (
    ("add", "{} + {}", np.add, 0), ("add", "{} + {}", np.add, 0), ("add", "{} + {}", np.add, 0),
    ("mul", "{} * {}", np.multiply, 1), ("min", "T.min({}, {})", np.minimum, 100),
    ("max", "T.max({}, {})", np.maximum, -100),
)  # fmt: skip


def draw_program(rng: Random, *, special: bool = False) -> Program:
    """A program; where `special`, over floats with NaN, infinities and negative zeros."""
    return Generator(rng, special=special).program()
