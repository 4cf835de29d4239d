"""The region that one iteration of a loop produces for a later block."""

from __future__ import annotations

import pytest

from gossamer_ir.arith.affine import expr_of
from gossamer_ir.script import parse_module, print_expr
from gossamer_schedule.cursor.cursor_at import cursor_at
from gossamer_schedule.cursor.find import find_block, find_loop
from gossamer_schedule.regions.produced import (
    iterator_indexed_dimensions,
    produced_range,
    producer_forms,
)

PROGRAM = """
@T.prim_func
def program(x: T.handle, y: T.handle):
    T.func_attr({{"sparse_tir_level": 0}})
    X = T.match_buffer(x, (16, 16), "float32")
    Y = T.match_buffer(y, (16, 16), "float32")
    B = T.alloc_buffer((16, 16), "float32")
    for i in T.serial(4):
        for j in T.serial(4):
            for k in T.serial(16):
                with T.block("make"):
                    vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                    B[{stored}] = X[vi * 4 + vj, vk]
    for u in T.serial(16):
        for v in T.serial(16):
            with T.block("use"):
                vu, vv = T.axis.remap("SS", [u, v])
                Y[vu, vv] = {value}
"""
PATHS = {"i": ("i",), "j": ("i", "j"), "k": ("i", "j", "k")}


def produced(stored, value, *, loop):
    """The range of each iterator of block `use` that one iteration of a loop produces: where it begins, and
    how many values it has (None: the whole domain)."""
    module = parse_module(PROGRAM.format(stored=stored, value=value))
    root = cursor_at(module, module.functions[0], primitive="reverse_compute_at")
    cursor, target = find_block(root, block="use"), find_loop(root, loop=loop)
    path = [find_loop(root, loop=name).node for name in PATHS[loop]]
    forms = producer_forms(cursor, "B", target)
    ranges = {
        iterator.var: produced_range(
            cursor, iterator, forms=forms[iterator.var], path=path, known_ranges={}
        )
        for iterator in cursor.node.iters
        if iterator.var in forms
    }
    return {
        name: (
            print_expr(item.base),
            None if item.count is None else print_expr(expr_of(item.count)),
            item.is_within,
        )
        for name, item in ranges.items()
        if item is not None
    }


WHOLE = ("0", None, True)


@pytest.mark.parametrize(
    ("stored", "value", "loop", "expected"),
    [
        ("vi * 4 + vj, vk", "B[vu, vv]", "i", {"vu": ("i * 4", "4", True), "vv": WHOLE}),
        ("vi * 4 + vj, vk", "B[vu, vv]", "j", {"vu": ("i * 4 + j", "1", True), "vv": WHOLE}),
        ("vk, vi * 4 + vj", "B[vu, vv]", "i", {"vu": WHOLE, "vv": ("i * 4", "4", True)}),
        ("vi * 4 + vj, vk", "B[vv, vu]", "i", {"vu": WHOLE, "vv": ("i * 4", "4", True)}),
        # The values of an iteration of `i` are 4 apart.
        ("vj * 4 + vi, vk", "B[vu, vv]", "i", {"vv": WHOLE}),
        # Not all values of the domain are produced.
        ("vi, vk", "B[vu, vv]", "i", {"vv": WHOLE}),
        # Several iterations produce what a stencil reads.
        ("vi * 4 + vj, vk", "B[vu, vv] + B[0, vv]", "i", {}),
        # Nothing says which `vv` reads the elements.
        ("vi * 4 + vj, vk", "B[vu, 0]", "i", {}),
    ],
)
def test_iterators_have_the_range_that_the_loop_writes(stored, value, loop, expected):
    assert produced(stored, value, loop=loop) == expected


@pytest.mark.parametrize(
    ("value", "dimensions"),
    [
        ("B[vu, vv]", [(0, "vu"), (1, "vv")]),
        ("B[vv, 3]", [(0, "vv")]),
        ("B[vu, 15 - vv]", [(0, "vu")]),
        ("B[vu, vv] + B[vv, vu]", []),
        ("X[vu, vv]", []),
    ],
)
def test_dimensions_are_indexed_by_an_iterator_of_their_own(value, dimensions):
    module = parse_module(PROGRAM.format(stored="vi * 4 + vj, vk", value=value))
    cursor = find_block(cursor_at(module, module.functions[0]), block="use")
    dimensions_by_iterator = iterator_indexed_dimensions(cursor, "B")
    assert [
        (dimension, iterator.var) for dimension, iterator in dimensions_by_iterator
    ] == dimensions
