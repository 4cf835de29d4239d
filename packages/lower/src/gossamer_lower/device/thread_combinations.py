"""Combines a value of each thread of a group by shuffles and shared memory."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gossamer_ir.core.build import ONE, ZERO, add, floordiv, index, mul
from gossamer_ir.core.conditions import conjunction
from gossamer_ir.core.limits import WARP_LANES
from gossamer_ir.nodes import (
    Allocate,
    Barrier,
    Binary,
    Buffer,
    Compare,
    Expr,
    If,
    Let,
    Load,
    ReduceOp,
    Select,
    Shuffle,
    ShuffleOp,
    Stmt,
    Store,
    Var,
)
from gossamer_ir.traversal.names import Namer


class ThreadGroup(msgspec.Struct, frozen=True):
    """Threads whose values are combined: how many there are, and the number of this one among them. `row` is
    the number of the group among the `rows` groups of a block.

    `is_consecutive`: a group is a range of the threads of a block. `is_alone`: it has all of them.
    """

    threads: int
    number: Expr
    rows: int
    row: Expr
    is_consecutive: bool
    is_alone: bool

    @property
    def is_in_warps(self) -> bool:
        """True if each group is a part of one warp, and shuffles alone combine its values."""
        return self.is_consecutive and WARP_LANES % self.threads == 0

    @property
    def has_own_warps(self) -> bool:
        """True if no warp has threads of several groups."""
        return self.is_consecutive and (self.threads % WARP_LANES == 0 or self.is_alone)


class ThreadCombination(msgspec.Struct, frozen=True):
    """Statements that combine values, the result, which each thread of the group has, and the shared memory
    that they use."""

    stmts: tuple[Stmt, ...]
    result: Expr
    shared: Buffer | None = None


class ThreadCombiner:
    """Makes the statements that combine a value of each thread of a group by an operation."""

    def __init__(self, group: ThreadGroup, op: ReduceOp, dtype: str, namer: Namer) -> None:
        self._group, self._op, self._dtype, self._namer = group, op, dtype, namer
        self._stmts: list[Stmt] = []

    def combination(self, value: Expr) -> ThreadCombination:
        """Return the combination of the values of all threads of the group."""
        group = self._group
        if group.is_in_warps:
            result = self._exchange(value, "xor", group.threads)
            return ThreadCombination(tuple(self._stmts), result)
        if group.has_own_warps:
            return self._over_warps(value)
        return self._over_tree(value)

    def _exchange(self, value: Expr, op: ShuffleOp, width: int) -> Expr:
        """Return the combination of the values of `width` threads; by `down`, the first of them has it."""
        offset = width // 2
        while offset:
            other = Var(self._namer.fresh("other"), self._dtype)
            self._stmts.append(Shuffle(op, other, value, offset, width))
            total = self._let(Binary(self._op, value, other))
            value = (
                total if op == "xor" else self._let(Select(self._has_other(offset), total, value))
            )
            offset //= 2
        return value

    def _has_other(self, offset: int) -> Expr:
        """Return whether a thread with this distance is in the group, and in the same warp."""
        last_lane = Compare("lt", self._lane(), index(WARP_LANES - offset))
        last = Compare("lt", self._group.number, index(self._group.threads - offset))
        return conjunction(last_lane, last) or last

    def _lane(self) -> Expr:
        return Binary("floormod", self._group.number, index(WARP_LANES))

    def _over_warps(self, value: Expr) -> ThreadCombination:
        """Combine the values of each warp, and then those of the warps in shared memory."""
        warps = -(-self._group.threads // WARP_LANES)
        is_whole = self._group.threads % WARP_LANES == 0
        value = self._exchange(value, "xor" if is_whole else "down", WARP_LANES)
        shared = self._partial_sums(warps)
        warp = floordiv(self._group.number, index(WARP_LANES))
        stored = Store(shared.name, (self._group.row, warp), value)
        self._stmts += [If(Compare("eq", self._lane(), ZERO), (stored,)), Barrier()]
        total: Expr = self._let(self._load_partial(shared, ZERO))
        for number in range(1, warps):
            total = self._let(Binary(self._op, total, self._load_partial(shared, index(number))))
        # The memory may be used again.
        self._stmts.append(Barrier())
        return ThreadCombination(tuple(self._stmts), total, shared)

    def _over_tree(self, value: Expr) -> ThreadCombination:
        """Combine the values of pairs of threads in shared memory, until one is left."""
        group = self._group
        shared = self._partial_sums(group.threads)
        self._stmts += [Store(shared.name, (group.row, group.number), value), Barrier()]
        distance = 1 << (group.threads - 1).bit_length() >> 1
        while distance:
            other = self._load_partial(shared, add(group.number, index(distance)))
            total = Binary(self._op, self._load_partial(shared, group.number), other)
            is_left = Compare("lt", group.number, index(min(distance, group.threads - distance)))
            stored = Store(shared.name, (group.row, group.number), total)
            self._stmts += [If(is_left, (stored,)), Barrier()]
            distance //= 2
        result = self._let(self._load_partial(shared, ZERO))
        self._stmts.append(Barrier())
        return ThreadCombination(tuple(self._stmts), result, shared)

    def _partial_sums(self, columns: int) -> Buffer:
        shape = (index(self._group.rows), index(columns))
        return Buffer(self._namer.fresh("partial_sums"), shape, self._dtype, scope="shared")

    def _load_partial(self, shared: Buffer, column: Expr) -> Load:
        return Load(shared.name, (self._group.row, column), self._dtype)

    def _let(self, value: Expr) -> Var:
        var = Var(self._namer.fresh("total"), self._dtype)
        self._stmts.append(Let(var, value))
        return var


def linear_number(numbers: Sequence[tuple[Expr, int]]) -> Expr:
    """Return the number of a thread from its numbers along axes with their extents, the fastest first.

    >>> from gossamer_ir.core.build import index_var
    >>> from gossamer_ir.script import print_expr
    >>> print_expr(linear_number([(index_var("x"), 4), (index_var("y"), 8)]))
    'x + y * 4'
    """
    number: Expr = ZERO
    stride: Expr = ONE
    for var, extent in numbers:
        number = add(number, mul(var, stride))
        stride = mul(stride, index(extent))
    return number


def allocation(combination: ThreadCombination) -> tuple[Stmt, ...]:
    """Return the allocation of the shared memory of a combination, if it uses some."""
    return () if combination.shared is None else (Allocate(combination.shared),)
