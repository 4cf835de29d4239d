"""Addresses share what they have in common."""

from __future__ import annotations

import re

import pytest

from gossamer_ir.core.build import ZERO, constant, index, index_var, sub
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Broadcast,
    Buffer,
    For,
    Lanes,
    Let,
    Load,
    Ramp,
    Reinterpret,
    Store,
    Var,
)

ROW, N = index_var("i"), index_var("n")
WIDE = Lanes(16)
NOTHING = Broadcast(constant(0, "float32"), WIDE)


def test_the_address_of_an_array_is_a_number(module, text, checked):
    where = Binary("bitand", Reinterpret("int64", Var("x", "handle")), index(7))
    source = checked(text(module(Store("Y", (where,), constant(1, "float32")))))
    assert source.count("ptrtoint ptr %p") == 1


def test_a_distance_from_a_shared_place_is_a_constant(module, text, checked):
    """`16 - n` and `32 - n`, computed separately, would need a register each."""
    early = [Ramp(sub(index(first), N), index(1), WIDE) for first in (16, 32)]
    source = checked(text(module(*(Store("Y", (run,), NOTHING) for run in early))))
    assert ", i64 16" in source
    assert ", i64 32" in source


@pytest.mark.parametrize("is_bound", [False, True], ids=["read in place", "bound by a let"])
def test_vectors_of_a_gathered_row_share_its_pointer(module, text, checked, is_bound):
    x = Buffer("X", (N, index(32)), "float32", "x")
    p, y = Buffer("P", (N,), "int64", "p"), Buffer("Y", (N, index(32)), "float32", "y")
    number = Load("P", (ROW,), "int64")
    row = Var("row", "int64")
    runs = [Ramp(index(first), index(1), WIDE) for first in (0, 16)]
    loads = [Load("X", (row if is_bound else number, run), "float32x16") for run in runs]
    copies = [Store("Y", (ROW, run), load) for run, load in zip(runs, loads, strict=True)]
    body = [Let(row, number), *copies] if is_bound else copies
    source = checked(text(module(For("i", ZERO, N, tuple(body)), buffers=(x, y, p))))
    assert source.count("asm") == 1
    assert re.search(r"getelementptr float, ptr %v\d+, i64 16", source)


NEXT = Buffer("NEXT", (N,), "int64", "next")
COLUMNS = Buffer("C", (N,), "int64", "c")
COLUMN, TAKEN = index_var("column"), index_var("taken")
AFTER = Binary("add", TAKEN, index(1))
IN_PLACE = Binary("add", Load("NEXT", (COLUMN,), "int64"), index(1))


@pytest.mark.parametrize(
    ("column", "body", "pointers"),
    [
        (
            Load("C", (ROW,), "int64"),
            (Let(TAKEN, Load("NEXT", (COLUMN,), "int64")), Store("NEXT", (COLUMN,), AFTER)),
            1,
        ),
        (
            Binary("add", ROW, index(1)),
            (Let(TAKEN, Load("NEXT", (COLUMN,), "int64")), Store("NEXT", (COLUMN,), AFTER)),
            0,
        ),
        (Load("C", (ROW,), "int64"), (Store("NEXT", (COLUMN,), IN_PLACE),), 0),
        (
            Load("C", (ROW,), "int64"),
            (Let(TAKEN, Load("C", (COLUMN,), "int64")), Store("NEXT", (COLUMN,), AFTER)),
            0,
        ),
    ],
    ids=["taken and replaced", "index of a loop", "incremented in memory", "of two arrays"],
)
def test_a_scalar_found_in_memory_is_replaced_through_one_pointer(
    module, text, checked, column, body, pointers
):
    loop = For("i", ZERO, N, (Let(COLUMN, column), *body))
    source = checked(text(module(loop, buffers=(NEXT, COLUMNS))))
    registers = re.findall(r"(%v\d+) = call ptr asm", source)
    assert len(registers) == pointers
    for register in registers:
        assert f"load i64, ptr {register}," in source
        assert re.search(rf"store i64 %v\d+, ptr {register},", source)


def test_addresses_of_constant_indices_are_constant(module, text):
    acc = Buffer("acc", (index(2), index(3), index(4)), "float32", scope="local")
    store = Store("acc", (index(1), index(2), index(3)), constant(1, "float32"))
    source = text(module(Allocate(acc), store))
    assert "getelementptr inbounds float, ptr %v2, i64 23" in source
