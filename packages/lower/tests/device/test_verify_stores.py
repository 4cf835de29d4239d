"""Stores of several threads to one element, which are refused."""

from contextlib import nullcontext

import pytest

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.script import parse_module
from gossamer_lower import verify_stores


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (
            ('for t in T.thread_binding(4, thread="threadIdx.x"):', "    Y[0] = X[t]"),
            "lower.verify_stores.reduction",
        ),
        (
            (
                'for t in T.thread_binding(4, thread="threadIdx.x"):',
                '    S = T.alloc_buffer((1,), "float32", scope="shared")',
                "    S[0] = X[t]",
                "    Y[t] = S[0]",
            ),
            "lower.verify_stores.shared",
        ),
        (
            (
                'for t in T.thread_binding(4, thread="threadIdx.x"):',
                "    if t < 3:",
                '        S = T.alloc_buffer((1,), "float32", scope="shared")',
                "        S[0] = X[t]",
                "        Y[t] = S[0]",
            ),
            "lower.verify_stores.shared",
        ),
        (
            (
                'for t in T.thread_binding(4, thread="threadIdx.x"):',
                "    if t < 3:",
                "        Y[0] = X[t]",
            ),
            "lower.verify_stores.condition",
        ),
    ],
)
def test_stores_of_several_threads_to_one_element_are_refused(lines, code, flat):
    with pytest.raises(UnsupportedError) as caught:
        verify_stores(flat(*lines))
    assert caught.value.code == code


def test_a_kernel_whose_threads_store_to_elements_of_their_own_is_unchanged(flat):
    lines = ('for t in T.thread_binding(4, thread="threadIdx.x"):', "    Y[t] = X[0]")
    module = flat(*lines)
    assert verify_stores(module) is module


@pytest.mark.parametrize(
    ("condition", "index"),
    [
        ("t >= 2", "0"),
        ("t != 3", "0"),
        ("X[t] > 0.0", "0"),
        ("t % 2 == 0", "0"),
        ("t == u", "0"),
        ("t + u == 1", "0"),
        ("t == i", "0"),
    ],
)
def test_conditions_that_may_select_several_threads_are_refused(condition, index, flat):
    with pytest.raises(UnsupportedError) as caught:
        verify_stores(stores_under(condition, index, flat))
    assert caught.value.code == "lower.verify_stores.condition"


@pytest.mark.parametrize(
    ("condition", "index"),
    [
        ("t == 2 and u == 0", "0"),
        ("t >= 3 and u < 1", "0"),
        ("t + u == 0", "0"),
        ("t == n and u == 1", "0"),
        ("t * 2 == 6 and u == 0", "0"),
        ("t == u", "u"),
        ("t == i", "i + u * 8"),
    ],
)
def test_conditions_that_select_one_thread_are_accepted(condition, index, flat):
    module = stores_under(condition, index, flat)
    assert verify_stores(module) is module


def stores_under(condition, index, flat):
    return flat(
        'for t in T.thread_binding(4, thread="threadIdx.x"):',
        '    for u in T.thread_binding(2, thread="threadIdx.y"):',
        "        for i in T.serial(8):",
        f"            if {condition}:",
        f"                Y[{index}] = X[t]",
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("        if t == v:", "            Y[0] = X[t]"),
        ("        Y[t + v] = X[t]",),
        ("        for i in T.serial(v * 8, v * 8 + 8):", "            Y[t * 8 + i] = X[t]"),
    ],
)
def test_what_threads_exchange_differs_from_thread_to_thread(lines, flat):
    around = (
        'for b in T.thread_binding(1, thread="blockIdx.x"):',
        '    for t in T.thread_binding(4, thread="threadIdx.x"):',
        "        v: T.int64 = T.shuffle_xor(t, 1, width=4)",
    )
    with pytest.raises(UnsupportedError, match=r"loop 't'.*'Y'"):
        verify_stores(flat(*around, *lines))


SCATTER = """
@T.prim_func
def scatter(y: T.handle, j: T.handle, p: T.handle, n: T.int64, m: T.int64, k: T.int64) -> None:
    T.stage("flat")
    J = T.match_buffer(j, (m,), "int32")
    P = T.match_buffer(p, (k + 1,), "int32")
    Y = T.match_buffer(y, (n,), "float32")
    {fact}
    for b in T.thread_binding(n // 256, thread="blockIdx.x"):
        S = T.alloc_buffer((8, 64), "float32", scope="shared")
        for t in T.thread_binding(32, thread="threadIdx.x"):
            L = T.alloc_buffer((1,), "int64", scope="local")
            L[0] = t
            for s in T.serial(4):
                for i in T.serial(k):
                    {store}
"""
NO_FACT = "T.assume(in_range(J, 0, n))"
DISTINCT = "T.assume(distinct(J))"
ROW = "T.assume(sorted_segments(J, unique=True))"


def checked(store, fact=NO_FACT):
    return verify_stores(parse_module(SCATTER.format(store=store, fact=fact)))


@pytest.mark.parametrize(
    ("store", "fact"),
    [
        ("Y[b * 32 + t] = 1.0", NO_FACT),
        ("Y[t * (n // 256) + b] = 1.0", NO_FACT),
        ("Y[b * 128 + s * 32 + t] = 1.0", NO_FACT),
        ("Y[b * 256 + t * 8 + i % 8] = 1.0", NO_FACT),
        ("Y[b * 32 + (t // 4) * 4 + t % 4] = 1.0", NO_FACT),
        ("Y[T.ramp(b * 128 + t * 4, 1, 4)] = T.broadcast(1.0, 4)", NO_FACT),
        ("S[t // 4, ((t & 3) ^ (t // 4) % 4) * 16] = 1.0", NO_FACT),
        ("S[s, i * 64 + t] = 1.0", NO_FACT),
        ("Y[J[b * 128 + s * 32 + t]] = 1.0", DISTINCT),
        ("Y[J[b * 128 + s * 32 + t]] = 1.0", ROW),
    ],
)
def test_indices_that_determine_the_thread_are_accepted(store, fact):
    checked(store, fact)


def test_threads_are_told_apart_in_any_number_of_blocks(flat):
    lines = (
        'for b in T.thread_binding(n, thread="blockIdx.x"):',
        '    for t in T.thread_binding(32, thread="threadIdx.x"):',
    )
    verify_stores(flat(*lines, "        Y[b * 32 + (t ^ 7)] = X[t]"))
    with pytest.raises(UnsupportedError, match="'b'"):
        verify_stores(flat(*lines, "        Y[b * 16 + (t ^ 7)] = X[t]"))


@pytest.mark.parametrize(
    ("store", "fact", "name"),
    [
        ("Y[b * 32 + t // 2] = 1.0", NO_FACT, "t"),
        ("Y[b * 32 + t % 8] = 1.0", NO_FACT, "t"),
        ("Y[b * 32 + (t & 3)] = 1.0", NO_FACT, "t"),
        ("Y[b * 31 + t] = 1.0", NO_FACT, "b"),
        ("Y[b * 32 + t + s] = 1.0", NO_FACT, "b"),
        ("Y[b // 2 * 64 + t] = 1.0", NO_FACT, "b"),
        ("Y[b * 32 + L[0]] = 1.0", NO_FACT, "b"),
        ("Y[T.ramp(b * 128 + t * 4, 1, 5)] = T.broadcast(1.0, 5)", NO_FACT, "b"),
        ("S[t // 4, ((t & 3) ^ (t // 4) % 4) // 2] = 1.0", NO_FACT, "t"),
        ("S[0, s + t] = 1.0", NO_FACT, "t"),
        ("Y[J[b * 128 + s * 32 + t]] = 1.0", NO_FACT, "b"),
        ("Y[J[b * 32 + s * 32 + t]] = 1.0", DISTINCT, "b"),
        ("Y[J[b * 128 + s * 32 + t]] = 1.0", "T.assume(sorted_segments(J, P, unique=True))", "b"),
        ("Y[J[b * 128 + s * 32 + t]] = 1.0", "T.assume(sorted_segments(J, unique=False))", "b"),
    ],
)
def test_indices_of_which_threads_may_have_equal_ones_are_refused(store, fact, name):
    with pytest.raises(UnsupportedError) as caught:
        checked(store, fact)
    assert caught.value.code == "lower.verify_stores.not_proved"
    assert f"loop '{name}'" in str(caught.value)


def test_the_error_names_buffer_index_and_thread():
    with pytest.raises(
        UnsupportedError, match="Cannot prove that the threads of loop 't'"
    ) as caught:
        checked("Y[b * 32 + t // 2] = 1.0")
    assert "different elements of 'Y', at the index 'b * 32 + t // 2'" in str(caught.value)


ON_HOST = (
    'S = T.alloc_buffer((n,), "float32")',
    "for i in T.serial(n // 7):",
    '    for b in T.thread_binding(2, thread="blockIdx.x"):',
    '        for t in T.thread_binding(4, thread="threadIdx.x"):',
    "            Y[{index}] = X[t]",
)


@pytest.mark.parametrize(
    ("index", "name"),
    [("i * 7 + t", "b"), ("b * 4 + i * 7 + t // 2", "t"), ("b * 4 + t // 2", "t")],
)
def test_kernels_that_a_host_launches_repeatedly_are_checked(index, name, flat):
    lines = [line.format(index=index) for line in ON_HOST]
    with pytest.raises(UnsupportedError, match=f"loop '{name}'"):
        verify_stores(flat(*lines))


@pytest.mark.parametrize("buffer", ["Y", "S"])
def test_a_kernel_may_store_to_other_elements_in_each_launch(buffer, flat):
    lines = [line.format(index="i * 7 + b * 4 + t").replace("Y[", f"{buffer}[") for line in ON_HOST]
    verify_stores(flat(*lines))


def test_memory_that_the_host_allocates_is_shared_by_all_threads(flat):
    lines = [line.format(index="i + t").replace("Y[", "S[") for line in ON_HOST]
    with pytest.raises(UnsupportedError, match=r"elements? of 'S'"):
        verify_stores(flat(*lines))


def test_facts_about_arrays_that_the_program_writes_are_not_used(flat):
    module = parse_module(
        SCATTER.format(store="Y[J[b * 128 + s * 32 + t]] = 1.0", fact=DISTINCT + "\n    J[0] = 1")
    )
    with pytest.raises(UnsupportedError, match="'b'"):
        verify_stores(module)


@pytest.mark.parametrize(("blocks", "is_refused"), [(1, False), (2, True)])
def test_threads_of_a_block_wait_for_each_other_between_iterations_but_blocks_do_not(
    blocks, is_refused, flat
):
    lines = (
        f'for b in T.thread_binding({blocks}, thread="blockIdx.x"):',
        "    for i in T.serial(n):",
        '        for t in T.thread_binding(4, thread="threadIdx.x"):',
        "            Y[b * 4 + i + t] = X[t]",
    )
    with pytest.raises(UnsupportedError, match="'b'") if is_refused else nullcontext():
        verify_stores(flat(*lines))


@pytest.mark.parametrize(("index", "is_refused"), [("u * 2 + i", False), ("u + i", True)])
def test_rows_of_threads_do_not_run_iterations_together(index, is_refused, flat):
    """The loop over iterations is in that over rows, and around that over the threads of a row."""
    lines = (
        'for u in T.thread_binding(2, thread="threadIdx.y"):',
        "    for i in T.serial(2):",
        '        for t in T.thread_binding(4, thread="threadIdx.x"):',
        f"            Y[({index}) * 4 + t] = X[t]",
    )
    with pytest.raises(UnsupportedError, match="'u'") if is_refused else nullcontext():
        verify_stores(flat(*lines))
