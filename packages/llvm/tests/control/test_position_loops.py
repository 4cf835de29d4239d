"""Loops over vectors of a row count positions in the arrays, where this is the same."""

from __future__ import annotations

import re

import pytest

from gossamer_ir.script import parse_module

GROUPS = """
@T.prim_func
def sums(x: T.handle, y: T.handle, p: T.handle, m: T.int64, n: T.int64) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    P = T.match_buffer(p, (m + 1,), "int32")
    T.assume(in_range(P, 0, n + 1))
    T.assume(monotone(P))
    S = T.alloc_buffer((4 * T.vscale(),), "float32", scope="local")
    for i in T.serial(m):
        S[T.ramp(0, 1, 4 * T.vscale())] = T.broadcast(0.0, 4 * T.vscale())
        for g in T.serial(COUNT // (8 * T.vscale())):
            begin: T.int64 = T.int64(P[i])
            S[T.ramp(0, 1, 4 * T.vscale())] = S[T.ramp(0, 1, 4 * T.vscale())] + X[T.ramp(begin + g * (8 * T.vscale()), 1, 4 * T.vscale())]
            S[T.ramp(0, 1, 4 * T.vscale())] = S[T.ramp(0, 1, 4 * T.vscale())] + X[T.ramp(begin + (g * (8 * T.vscale()) + 4 * T.vscale()), 1, 4 * T.vscale())]
            # more
        for r in T.serial((REST + (4 * T.vscale() - 1)) // (4 * T.vscale())):
            S[T.ramp(0, 1, 4 * T.vscale())] = T.Select(MASK, S[T.ramp(0, 1, 4 * T.vscale())] + T.load(X, T.ramp(T.int64(P[i]) + (COUNT // (8 * T.vscale()) * (8 * T.vscale()) + r * (4 * T.vscale())), 1, 4 * T.vscale()), predicate=MASK, passthrough=T.broadcast(0.0, 4 * T.vscale())), S[T.ramp(0, 1, 4 * T.vscale())])
        Y[i] = T.lane_reduce("add", S[T.ramp(0, 1, 4 * T.vscale())])
"""  # noqa: E501  (scripts have no line breaks inside an expression)
MASK = "T.ramp(r * (4 * T.vscale()), 1, 4 * T.vscale()) < T.broadcast(REST, 4 * T.vscale())"
REST = "(COUNT - COUNT // (8 * T.vscale()) * (8 * T.vscale()))"
COUNT = "(T.int64(P[i + 1]) - T.int64(P[i]))"


def program(*, old="", new=""):
    """The sums of rows in groups of two vectors and masked ones, with a change of the text."""
    assert old in GROUPS
    text = GROUPS.replace(old, new) if old else GROUPS
    for name, value in {"MASK": MASK, "REST": REST, "COUNT": COUNT}.items():
        text = text.replace(name, value)
    return parse_module(text)


def test_positions_need_neither_the_number_of_groups_nor_that_of_the_rest(text, checked, scalable):
    source = checked(text(program(), scalable))
    assert "ashr" not in source
    assert source.count("icmp sle i64") == 2
    # Neither masks nor the rest of a row count from 0.
    assert not re.search(r"smax\.i64\(i64 %v\d+, i64 0\)", source)
    assert "get.active.lane.mask.nxv4i1.i64(i64 0" not in source


CHANGES = {
    "positions that may be negative": ("in_range(P, 0, n + 1)", "in_range(P, -1, n + 1)"),
    "no range of positions": ("    T.assume(in_range(P, 0, n + 1))\n", ""),
    "another use of the variable": ("# more", "Y[g] = 1.0"),
    "an index that does not move by a group": (
        "# more",
        "Y[T.ramp(g * (4 * T.vscale()), 1, 4 * T.vscale())] = T.broadcast(1.0, 4 * T.vscale())",
    ),
    "another start": (
        "# more",
        "Y[T.ramp(g * (8 * T.vscale()), 1, 4 * T.vscale())] = T.broadcast(1.0, 4 * T.vscale())",
    ),
    "positions that change": ("# more", "P[g] = 0"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_other_loops_count_groups(name, text, checked, scalable):
    old, new = CHANGES[name]
    source = checked(text(program(old=old, new=new), scalable))
    assert "ashr" in source
    assert "icmp sle i64" not in source


def test_the_rest_of_rows_of_unknown_order_begins_where_it_is_computed(text, checked, scalable):
    """The number of groups of a row of negative length is negative, too; the loop over groups does not move
    then."""
    source = checked(text(program(old="    T.assume(monotone(P))\n", new=""), scalable))
    assert source.count("icmp sle i64") == 2
    assert "ashr" in source
    assert "get.active.lane.mask.nxv4i1.i64(i64 0" in source
