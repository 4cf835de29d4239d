"""Random flat programs: the machine code agrees with the reference interpreter.

All values are int64 and every index is taken modulo the length, so that every program is legal.
"""

import random

import numpy as np
import pytest

from gossamer_ir.core.build import ZERO, index, index_var
from gossamer_ir.interpret import run
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Broadcast,
    Buffer,
    Compare,
    For,
    If,
    IfThenElse,
    LaneReduce,
    Lanes,
    Let,
    Load,
    Ramp,
    Select,
    Store,
    TransposeReduce,
    Var,
)

pytestmark = pytest.mark.no_error_examples

LENGTH = 24
LANES = Lanes(8)
PROGRAMS_PER_SEED = 25
BUFFERS = tuple(Buffer(name, (index(LENGTH),), "int64", name.lower()) for name in "XY")


class Programs:
    """Draws statements and expressions over the variables and buffers in scope."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.count = 0
        self.vars = ["n"]
        self.buffers = ["X", "Y"]

    def fresh(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    def leaf(self):
        if self.draw.random() < 0.6:
            return index_var(self.draw.choice(self.vars))
        return index(self.draw.choice([-3, -1, 0, 1, 2, 5, 7, 2**62]))

    def expr(self, depth):
        kind = self.draw.choice(
            ["binary"] * 5 + ["division", "select", "if", "load", "load", "masked", "leaf"]
        )
        if depth <= 0 or kind == "leaf":
            return self.leaf()
        deeper = depth - 1
        if kind == "binary":
            operation = self.draw.choice(["add", "sub", "mul", "min", "max", "bitand", "bitxor"])
            return Binary(operation, self.expr(deeper), self.expr(deeper))
        if kind == "division":
            operation = self.draw.choice(["floordiv", "floormod"])
            return Binary(operation, self.expr(deeper), index(self.draw.choice([-3, 2, 3, 8])))
        if kind in ("select", "if"):
            node = Select if kind == "select" else IfThenElse
            return node(self.condition(deeper), self.expr(deeper), self.expr(deeper))
        where = (self.position(deeper),)
        if kind == "load":
            return Load(self.buffer(), where, "int64")
        return Load(self.buffer(), where, "int64", self.condition(deeper), self.expr(deeper))

    def buffer(self):
        return self.draw.choice(self.buffers)

    def position(self, depth):
        return Binary("floormod", self.expr(depth), index(LENGTH))

    def condition(self, depth):
        operation = self.draw.choice(["lt", "le", "eq", "ne", "gt", "ge"])
        return Compare(operation, self.expr(depth), self.expr(depth))

    def wide(self, value):
        return Broadcast(value, LANES)

    def vector_store(self):
        tile = Binary("mul", Binary("floormod", self.expr(1), index(3)), index(8))
        run_ = Ramp(self.draw.choice([ZERO, index(8), tile]), index(1), LANES)
        limit = Compare("lt", run_, self.wide(self.expr(1)))
        mask = self.draw.choice([None, limit])
        rest = None if mask is None else self.wide(self.expr(1))
        loaded = Load(self.buffer(), (run_,), "int64x8", mask, rest)
        anywhere = Ramp(self.expr(1), index(self.draw.choice([1, 3])), LANES)
        where = Binary("floormod", anywhere, self.wide(index(LENGTH)))
        value = Binary("add", loaded, Load(self.buffer(), (where,), "int64x8"))
        if self.draw.random() < 0.3:
            reduced = LaneReduce(self.draw.choice(["add", "min", "max"]), value)
            return Store(self.buffer(), (self.position(1),), reduced)
        if self.draw.random() < 0.2:
            several = self.draw.choice([(value, loaded), (loaded, value)]) * 4
            combined = TransposeReduce(self.draw.choice(["add", "min", "max"]), several)
            return Store(self.buffer(), (run_,), combined, self.draw.choice([None, limit]))
        return Store(self.buffer(), (run_,), value, self.draw.choice([None, limit]))

    def scalar_store(self):
        predicate = self.condition(1) if self.draw.random() < 0.3 else None
        return Store(self.buffer(), (self.position(1),), self.expr(2), predicate)

    def stmt(self, depth):
        kind = self.draw.choice(["store", "vector", "for", "for", "if", "let", "allocate"])
        if kind == "vector":
            return (self.vector_store(),)
        if depth <= 0 or kind == "store":
            return (self.scalar_store(),)
        if kind == "for":
            return (self.loop(depth),)
        if kind == "if":
            branches = self.body(depth - 1), self.draw.choice([(), self.body(depth - 1)])
            return (If(self.condition(1), *branches),)
        if kind == "let":
            let = Let(Var(self.fresh("v"), "int64"), self.expr(2))
            self.vars.append(let.var.name)
            return (let,)
        return self.allocation()

    def loop(self, depth):
        var, start = self.fresh("i"), self.draw.choice([ZERO, self.expr(1)])
        extent = Binary("min", self.expr(1), index(4))
        self.vars.append(var)
        body = self.body(depth - 1)
        self.vars.remove(var)
        return For(var, start, extent, body)

    def allocation(self):
        name, var = self.fresh("T"), self.fresh("z")
        scope = self.draw.choice(["local", "global"])
        fill = Store(name, (index_var(var),), index_var(var))
        self.buffers.append(name)
        return (
            Allocate(Buffer(name, (index(LENGTH),), "int64", scope=scope)),
            For(var, ZERO, index(LENGTH), (fill,)),
        )

    def body(self, depth):
        in_scope = list(self.vars), list(self.buffers)
        stmts = [self.stmt(depth) for _ in range(self.draw.randint(1, 3))]
        self.vars, self.buffers = in_scope
        return tuple(node for nested in stmts for node in nested)


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_agree_with_the_interpreter(build, serial, seed):
    for number in range(PROGRAMS_PER_SEED):
        programs = Programs(f"{seed} {number}")
        body = [node for _ in range(4) for node in programs.stmt(3)]
        module = serial(body, buffers=BUFFERS, scalars=[("n", "int64")])
        expected, result = (
            {"x": np.arange(LENGTH) * 3 - 20, "y": np.arange(LENGTH)[::-1].copy(), "n": 5}
            for _ in range(2)
        )
        run(module, expected)
        build(module)(**result)
        for name in "xy":
            assert np.array_equal(result[name], expected[name]), (seed, number)
