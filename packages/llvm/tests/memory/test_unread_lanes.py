"""Stores to local buffers whose masks keep lanes that nothing reads."""

from __future__ import annotations

import pytest

from gossamer_ir.script import parse_module
from gossamer_llvm import TargetInfo, emit_llvm_ir
from gossamer_llvm.memory.unread_lanes import stores_of_unread_lanes

SCRIPT = """
@T.prim_func
def sums(x: T.handle, y: T.handle, n: T.int64, k: T.int64) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (n, k), "float32")
    Y = T.match_buffer(y, (k,), "float32")
    Z = T.alloc_buffer((8,), "float32", scope="local")
    Z[T.ramp(0, 1, 4)] = T.Select(MASK, T.broadcast(0.0, 4), Z[T.ramp(0, 1, 4)])
    for i in T.serial(n):
        Z[T.ramp(0, 1, 4)] = T.Select(MASK, Z[T.ramp(0, 1, 4)] + LOAD, Z[T.ramp(0, 1, 4)])
    T.store(Y, T.ramp(0, 1, 4), value=Z[T.ramp(0, 1, 4)], predicate=MASK)
"""
LOAD = "T.load(X, i, T.ramp(0, 1, 4), predicate=MASK, passthrough=T.broadcast(0.0, 4))"
MASK = "T.ramp(0, 1, 4) < T.broadcast(k, 4)"
LAST = "    T.store(Y, T.ramp(0, 1, 4), value=Z[T.ramp(0, 1, 4)], predicate=MASK)\n"
SUM = "Z[T.ramp(0, 1, 4)] + LOAD"


def module(*changes):
    text = SCRIPT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return parse_module(text.replace("LOAD", LOAD).replace("MASK", MASK))


def stores(*changes):
    (function,) = module(*changes).functions
    return stores_of_unread_lanes(function)


KEPT = {
    "the init and the sum": (),
    "other operations on lanes": ((SUM, "T.sqrt(Z[T.ramp(0, 1, 4)]) * LOAD"),),
    "another vector of the buffer": (
        (LAST, LAST + "    Z[T.ramp(4, 1, 4)] = T.broadcast(1.0, 4)\n"),
    ),
}


@pytest.mark.parametrize("changes", KEPT.values(), ids=KEPT)
def test_lanes_that_are_read_by_the_mask_only_may_hold_anything(changes):
    assert len(stores(*changes)) == 2


READ = {
    "all lanes are stored": ((LAST, LAST.replace(", predicate=MASK", "")),),
    "another mask": ((LAST, LAST.replace("MASK", "T.ramp(1, 1, 4) < T.broadcast(k, 4)")),),
    "a sum of all lanes": ((LAST, "    Y[0] = T.lane_reduce('add', Z[T.ramp(0, 1, 4)])\n"),),
    "a sum of all lanes by the mask": (
        (
            LAST,
            "    T.store(Y, T.ramp(0, 1, 4), value=T.broadcast("
            "T.lane_reduce('add', Z[T.ramp(0, 1, 4)]), 4), predicate=MASK)\n",
        ),
    ),
    "an overlapping vector": ((LAST, LAST + "    Z[T.ramp(2, 1, 4)] = T.broadcast(1.0, 4)\n"),),
    "lanes past the end of a row": (
        ("(8,)", "(2, 6)"),
        ("Z[T", "Z[0, T"),
    ),
    "one element": ((LAST, LAST + "    Y[0] = Z[3]\n"),),
    "a variable": ((LAST, "    z: T.float32x4 = Z[T.ramp(0, 1, 4)]\n" + LAST),),
    "a mask of the loop": (
        (SUM, "Z[T.ramp(0, 1, 4)] + LOAD"),
        ("T.Select(MASK, Z", "T.Select(T.ramp(i, 1, 4) < T.broadcast(k, 4), Z"),
    ),
    "integers": (("float32", "int32"), ("0.0", "0"), ("LOAD", LOAD.replace("0.0", "0"))),
    "memory that is not local": (('scope="local"', 'scope="global"'),),
}


@pytest.mark.parametrize("changes", READ.values(), ids=READ)
def test_lanes_that_are_read_otherwise_keep_their_values(changes):
    assert not stores(*changes)


@pytest.mark.parametrize(("has_costly_masks", "selects"), [(False, 2), (True, 0)])
def test_masks_in_vector_registers_are_not_emitted_for_such_stores(
    checked, has_costly_masks, selects
):
    target_info = TargetInfo("x86_64-unknown-linux-gnu", has_costly_masks=has_costly_masks)
    source = emit_llvm_ir(module(), target_info=target_info)
    assert checked(source)
    assert source.count("select <4 x i1>") == selects


IN_LOOP = """
@T.prim_func
def prefixes(y: T.handle, n: T.int64) -> None:
    T.stage("flat")
    Y = T.match_buffer(y, (n, 4), "float32")
    BEFORE
    for i in T.serial(n):
        INSIDE
        Z[T.ramp(0, 1, 4)] = T.Select(MASK, Z[T.ramp(0, 1, 4)] + T.broadcast(1.0, 4), Z[T.ramp(0, 1, 4)])
        T.store(Y, i, T.ramp(0, 1, 4), value=Z[T.ramp(0, 1, 4)], predicate=MASK)
"""
ALLOCATE = 'Z = T.alloc_buffer((4,), "float32", scope="local")'


@pytest.mark.parametrize(("place", "kept"), [("BEFORE", 0), ("INSIDE", 1)])
def test_lanes_that_a_later_iteration_reads_keep_their_values(place, kept):
    text = IN_LOOP.replace(place, ALLOCATE).replace("MASK", "T.ramp(0, 1, 4) < T.broadcast(i, 4)")
    lines = [line for line in text.splitlines() if line.strip() not in ("BEFORE", "INSIDE")]
    (function,) = parse_module("\n".join(lines)).functions
    assert len(stores_of_unread_lanes(function)) == kept


PASSED = """
@T.prim_func(entry=True)
def sums(y: T.handle, n: T.int64, k: T.int64) -> None:
    T.stage("flat")
    Y = T.match_buffer(y, (n, 4), "float32")
    Z = T.alloc_buffer((4,), "float32", scope="local")
    Z[T.ramp(0, 1, 4)] = T.Select(MASK, T.broadcast(1.0, 4), Z[T.ramp(0, 1, 4)])
    CALL


@T.prim_func
def rows(begin: T.int64, end: T.int64, y: T.handle, z: T.handle, n: T.int64) -> None:
    T.stage("flat")
    Y = T.match_buffer(y, (n, 4), "float32")
    Z = T.match_buffer(z, (4,), "float32")
    for i in T.serial(begin, end):
        Y[i, T.ramp(0, 1, 4)] = Z[T.ramp(0, 1, 4)]
"""


@pytest.mark.parametrize(
    ("call", "count"),
    [
        ('T.parallel_for("rows", "i", n, args=[y, Z, n])', 0),
        ("T.store(Y, 0, T.ramp(0, 1, 4), value=Z[T.ramp(0, 1, 4)], predicate=MASK)", 1),
    ],
)
def test_lanes_of_a_buffer_that_is_passed_to_a_function_keep_their_values(call, count):
    module = parse_module(PASSED.replace("CALL", call).replace("MASK", MASK))
    assert len(stores_of_unread_lanes(module.functions[0])) == count
