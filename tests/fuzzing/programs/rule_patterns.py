"""Random programs of the patterns that default rules recognize, large enough for vectors: sparse times
dense products, sampled products, sums over fibers, element-wise programs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gossamer_ir.analysis.statements.reductions import identity
from gossamer_ir.core.constants import constant
from gossamer_ir.nodes import Binary, BinaryOp, Cast, Expr, Iteration, Load, OverAxis, Store, Var
from tests.fuzzing.programs.expressions import Term
from tests.fuzzing.programs.iterations import Bodies

ROWS, COLUMNS, FEATURES = (0, 1, 3, 5, 8, 13, 20), (0, 1, 4, 9, 19), (1, 3, 4, 8, 16, 17, 33, 70)
MAX_WORK = 1500
OPS: tuple[BinaryOp, ...] = ("add", "add", "add", "max", "min")
DTYPES = ("float32", "float32", "float64", "int32", "float16", "bfloat16")


class Common:
    """Draws one iteration over an empty forest."""

    def __init__(self, bodies: Bodies) -> None:
        self.bodies, self.rng, self.forest = bodies, bodies.rng, bodies.forest
        self.dtype = self.rng.choice(DTYPES)

    def draw(self) -> Iteration:
        kinds: tuple[Callable[[], Iteration], ...] = (
            self.product, self.product, self.sum, self.sampled, self.elementwise, self.blocks,
            self.tiles,
        )  # fmt: skip
        return self.rng.choice(kinds)()

    # --- parts

    def matrix(self) -> tuple[list[str], str]:
        """The axes of a sparse matrix, and a dense axis of its columns."""
        forest, rng = self.forest, self.rng
        above = [forest.add_root(1 if rng.random() < 0.2 else rng.choice(ROWS))]
        if forest.length(above[0]) == 1:
            above.append(forest.add_stored_rows(above[0], rng.choice(ROWS)))
        axis = forest.add_below(forest.slots[above[-1]].axis, length=rng.choice(COLUMNS))
        return [*above, axis], forest.add_root(forest.length(axis))

    def features(self, around: Sequence[str]) -> str:
        work = max(self.forest.slots[around[-1]].size, 1)
        fitting = [count for count in FEATURES if count * work <= MAX_WORK]
        return self.forest.add_root(self.rng.choice(fitting or FEATURES[:1]))

    def row_axis(self, axes: Sequence[str]) -> str:
        """The dense axis of the rows: the first one, or another one of that length."""
        if len(axes) == 2 and self.rng.random() < 0.7:
            return axes[0]
        return self.forest.add_root(self.forest.length(axes[-2]))

    def load(self, axes: Sequence[str], indices: Sequence[Expr]) -> Expr:
        buffer = self.bodies.buffer(tuple(axes), self.dtype, is_read=True)
        return Load(buffer.name, tuple(indices), self.dtype)

    def reduced(
        self, kinds: str, axes: Sequence[str], vars_: Sequence[Var], *,
        out: tuple[Sequence[str], Sequence[Expr]], value: Expr, many: float,
        inits: float = 0.85,
    ) -> Iteration:  # fmt: skip
        """`out = out op value` over axes, often with an init."""
        op = self.rng.choice(OPS)
        buffer = self.bodies.buffer(tuple(out[0]), self.dtype, is_read=True)
        indices = tuple(out[1])
        element = Load(buffer.name, indices, self.dtype)
        sides = (element, value) if self.rng.random() < 0.8 else (value, element)
        start = identity(op, self.dtype)
        init = (Store(buffer.name, indices, start),) if self.rng.random() < inits else ()
        content = self.bodies.accumulated(Term(value, self.dtype, 64.0), op, many)
        self.bodies.tolerances[str(buffer.handle)] = content.error
        return Iteration(
            "step",
            tuple(OverAxis(axis) for axis in axes),
            kinds,
            tuple(var.name for var in vars_),
            (Store(buffer.name, indices, Binary(op, *sides)),),
            init,
        )

    def vars(self, count: int) -> list[Var]:
        return [Var(name, "int64") for name in ("i", "j", "k", "l", "m")[:count]]

    # --- patterns

    def product(self) -> Iteration:
        """C[i, k] += A[i, j] * B[j, k]"""
        axes, columns = self.matrix()
        features = self.features(axes)
        *rows, j, k = vars_ = self.vars(len(axes) + 1)
        value: Expr = self.load((columns, features), (j, k))
        if self.rng.random() < 0.9:
            value = Binary("mul", self.load(axes, (*rows, j)), value)
        row = self.row_axis(axes)
        kinds = "S" * (len(axes) - 1) + "RS"
        return self.reduced(kinds, (*axes, features), vars_, out=((row, features), (rows[-1], k)),
                            value=value, many=self.forest.most(axes[-1]))  # fmt: skip

    def sum(self) -> Iteration:
        """C[i] += A[i, j] * X[j]"""
        axes, columns = self.matrix()
        *rows, j = vars_ = self.vars(len(axes))
        value = self.load(axes, vars_)
        if self.rng.random() < 0.7:
            value = Binary("mul", value, self.load((columns,), (j,)))
        row = self.row_axis(axes)
        kinds = "S" * (len(axes) - 1) + "R"
        return self.reduced(kinds, axes, vars_, out=((row,), (rows[-1],)), value=value,
                            many=self.forest.most(axes[-1]))  # fmt: skip

    def sampled(self) -> Iteration:
        """E[i, j] += D[i, k] * B[j, k]"""
        axes, columns = self.matrix()
        features = self.features(axes)
        row = self.row_axis(axes)
        *rows, j, k = vars_ = self.vars(len(axes) + 1)
        sides = self.load((row, features), (rows[-1], k)), self.load((columns, features), (j, k))
        value: Expr = Binary("mul", *sides)
        if self.rng.random() < 0.4:
            value = Binary("mul", value, self.load(axes, (*rows, j)))
        return self.reduced("S" * len(axes) + "R", (*axes, features), vars_, out=(axes, (*rows, j)),
                            value=value, many=self.forest.length(features))  # fmt: skip

    def blocks(self) -> Iteration:
        """C[i * b + l, k] += A[i, j, l, m] * B[j * b + m, k]"""
        forest, rng = self.forest, self.rng
        outer = forest.add_root(rng.choice((0, 1, 3, 5)))
        column = forest.add_below(forest.slots[outer].axis, length=rng.choice((1, 2, 4)))
        sides = [forest.add_root(rng.choice((1, 2, 3, 4))) for _ in range(2)]
        row = forest.add_root(forest.length(outer) * forest.length(sides[0]))
        columns = forest.add_root(forest.length(column) * forest.length(sides[1]))
        features = forest.add_root(rng.choice((1, 4, 8, 17)))
        i, j, l, m, k = (Var(name, "int64") for name in "ijlmk")  # noqa: E741
        at_row = Binary("add", Binary("mul", i, forest.slots[sides[0]].axis.length), l)
        at_column = Binary("add", Binary("mul", j, forest.slots[sides[1]].axis.length), m)
        value = Binary("mul", self.load((outer, column, *sides), (i, j, l, m)),
                       self.load((columns, features), (at_column, k)))  # fmt: skip
        return self.reduced("SRSRS", (outer, column, *sides, features), (i, j, l, m, k),
                            out=((row, features), (at_row, k)), value=value,
                            many=4 * forest.most(column))  # fmt: skip

    def tiles(self) -> Iteration:
        """C[i, k] += A[t, i, j] * B[t * width + j, k]"""
        forest, rng = self.forest, self.rng
        width = rng.choice((1, 2, 3, 6))
        tile = forest.add_root(rng.choice((0, 1, 2, 3)))
        rows = forest.add_same_rows(tile, rng.choice((0, 1, 3, 7)))
        fiber = forest.add_stored_rows(rows, width, symbolic=0.1)
        row = forest.add_root_like(rows)
        columns = forest.add_root(forest.length(tile) * width)
        features = forest.add_root(rng.choice((1, 3, 8, 17, 40)), symbolic=0.1)
        t, i, j, k = vars_ = self.vars(4)
        at = Binary("add", Binary("mul", t, forest.slots[fiber].axis.length), j)
        value = Binary("mul", self.load((tile, rows, fiber), (t, i, j)),
                       self.load((columns, features), (at, k)))  # fmt: skip
        many = forest.most(fiber) * forest.length(tile)
        return self.reduced("RSRS", (tile, rows, fiber, features), vars_,
                            out=((row, features), (i, k)), value=value, many=many,
                            inits=0.15)  # fmt: skip

    def elementwise(self) -> Iteration:
        """E[i, j] = A[i, j] * X[j] + i"""
        axes, columns = self.matrix()
        vars_ = self.vars(len(axes))
        value: Expr = Binary("mul", self.load(axes, vars_), self.load((columns,), vars_[-1:]))
        if self.rng.random() < 0.4:
            value = Binary("add", value, Cast(self.dtype, vars_[-2]))
        if self.rng.random() < 0.3:
            value = Binary("max", value, constant(1, self.dtype))
        buffer = self.bodies.buffer(tuple(axes), self.dtype, is_read=True)
        items = tuple(OverAxis(axis) for axis in axes)
        names = tuple(var.name for var in vars_)
        store = Store(buffer.name, tuple(vars_), value)
        return Iteration("step", items, "S" * len(axes), names, (store,))
