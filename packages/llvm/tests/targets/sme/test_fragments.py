"""Buffers in matrix registers: rows that are read and written, outer products, streaming mode, refusals."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.script import parse_module
from gossamer_llvm import emit_llvm_ir, sme_lowering

LOWERING = sme_lowering(attributes=("vscale_range(1,16)", '"aarch64_pstate_sm_body"'))

L = "4 * T.vscale()"
ROW = f"T.ramp(0, 1, {L})"
TILE = f'S = T.alloc_buffer(({L}, {L}), "float32", scope="fragment")'
HALVES = f'H = T.alloc_buffer(({L}, 8 * T.vscale()), "float16", scope="fragment")'
FACTORS = f'X = T.alloc_buffer(({L}, {L}), "float32", scope="fragment")'


@pytest.fixture
def sme(scalable):
    """The properties of a CPU with SME."""
    return replace(scalable, has_half_conversions=True)


@pytest.fixture
def emitted(sme):
    """The LLVM text of statements over the float32 arrays X and Y and the float16 array Z."""

    def text(*lines, lowering=LOWERING, more=""):
        return emit_llvm_ir(flat(*lines, more=more), target_info=sme, lowering=lowering)

    return text


def flat(*lines, more=""):
    return parse_module(
        "\n".join((
            "@T.prim_func",
            "def f(a: T.handle, b: T.handle, z: T.handle, n: T.int64) -> None:",
            '    T.stage("flat")',
            '    A = T.match_buffer(a, (n,), "float32")',
            '    B = T.match_buffer(b, (n,), "float32")',
            '    Z = T.match_buffer(z, (n,), "float16")',
            *(f"    {line}" for line in lines),
            more,
        ))
    )  # fmt: skip


def rows(*stores, over="r", count=L):
    """A loop over rows."""
    return (f"for {over} in T.serial({count}):", *(f"    {store}" for store in stores))


def update(product, at="S[r, {0}]"):
    element = at.format(ROW)
    return f"{element} = {element} + {product}"


PRODUCT = f"T.broadcast(X[r, 3], {L}) * A[{ROW}]"
WIDENED = "T.broadcast(T.float32(H[r, {0}]), " + L + ") * T.cast(Z[{1}], 'float32xvscalex4')"
FIRST, SECOND = WIDENED.format("2 * n", ROW), WIDENED.format("2 * n + 1", f"T.ramp(4, 1, {L})")


def test_rows_are_moved_between_tiles_and_vectors(emitted, checked):
    source = emitted(TILE, *rows(f"S[r, {ROW}] = A[{ROW}]", f"B[{ROW}] = S[r, {ROW}]"))
    assert "llvm.aarch64.sme.zero(i32 17)" in checked(source)
    assert "llvm.aarch64.sme.write.horiz.nxv4f32(i32 0, " in source
    assert "llvm.aarch64.sme.read.horiz.nxv4f32" in source


def test_masks_of_rows_are_those_of_their_accesses(emitted, checked):
    mask = f"T.ramp(0, 1, {L}) < T.broadcast(n, {L})"
    source = emitted(TILE, *rows(f"T.store(S, r, {ROW}, value=A[{ROW}], predicate={mask})"))
    (stored,) = re.findall(r"call void @llvm.aarch64.sme.write.*", checked(source))
    assert "splat (i1 true)" not in stored


def test_each_buffer_has_tiles_of_its_own_while_it_lives(emitted):
    several = f'M = T.alloc_buffer((3, {L}, {L}), "float32", scope="fragment")'
    nested = (
        "if n > 3:",
        f"    {FACTORS}",
        *(f"    {line}" for line in rows(f"X[r, {ROW}] = A[{ROW}]")),
    )
    source = emitted(several, *nested, *(line.replace("X", "W") for line in nested))
    assert source.count("sme.zero(i32 119)") == 1
    assert source.count("call void @llvm.aarch64.sme.zero(i32 136)") == 2


def test_a_loop_over_all_rows_is_one_outer_product(emitted, checked):
    source = emitted(TILE, FACTORS, *rows(update(PRODUCT)))
    assert "llvm.aarch64.sme.mopa.nxv4f32(i32 0, " in checked(source)
    assert "llvm.aarch64.sme.read.vert.nxv4f32" in source
    assert "write.horiz" not in source


@pytest.mark.parametrize("terms", [FIRST, f"({FIRST} + {SECOND})"], ids=["one column", "a pair"])
def test_products_of_float16_are_added_in_pairs(emitted, checked, terms):
    source = checked(emitted(TILE, HALVES, *rows(update(terms))))
    assert source.count("call void @llvm.aarch64.sme.mopa.wide.nxv8f16(i32 0, ") == 1
    assert ("call <vscale x 8 x i16> @llvm.aarch64.sve.trn1" in source) == ("+ " + SECOND in terms)
    # The other column of a pair is not a factor.
    assert ("splat (i32 65535)" in source) == (terms == FIRST)


def test_the_function_runs_in_streaming_mode(emitted, checked):
    source = emitted(TILE, FACTORS, *rows(update(PRODUCT)))
    attributes = r'nounwind vscale_range\(1,16\) "aarch64_pstate_sm_body"'
    assert re.search(rf"@gossamer_kernel\(.*\) {attributes}", source)
    assert checked(source).count("call void @llvm.aarch64.sme.za.enable()") == 1
    # It does not ask whether to stop: that function may not be called in the mode.
    assert not re.search(r"call i64 %v", source)


def test_functions_without_fragments_do_not_stream(emitted):
    source = emitted("for i in T.serial(n):", "    B[i] = A[i]")
    assert "sme.za.enable" not in source
    assert re.search(r"@gossamer_kernel\(.*\) #0", source)


NO_PRODUCTS = {
    "part of the rows": rows(update(PRODUCT), count="n"),
    "a product that varies with the row": rows(update(f"T.broadcast(X[r, r], {L}) * A[{ROW}]")),
    "a vector that varies with the row": rows(
        update(f"T.broadcast(X[r, 3], {L}) * A[T.ramp(r, 1, {L})]")
    ),
    "a factor that is written": rows(update(f"T.broadcast(S[r, 3], {L}) * A[{ROW}]")),
    "a single element": rows("S[r, 3] = 1.0"),
    "a part of a row": rows(f"S[r, T.ramp(1, 1, {L})] = A[{ROW}]"),
    "an unknown tile": (
        f'M = T.alloc_buffer((2, {L}, {L}), "float32", scope="fragment")',
        *rows(f"M[n, r, {ROW}] = A[{ROW}]"),
    ),
}


@pytest.mark.parametrize("case", NO_PRODUCTS)
def test_other_accesses_are_refused(emitted, case):
    with pytest.raises(UnsupportedError) as caught:
        emitted(TILE, FACTORS, *NO_PRODUCTS[case])
    assert caught.value.code == "llvm.fragment.access"


@pytest.mark.parametrize("second", ["2 * n + 2", "2 * n - 1", "n + 1"])
def test_columns_that_are_no_pair_are_refused(emitted, second):
    first = FIRST if second != "n + 1" else WIDENED.format("n", ROW)
    with pytest.raises(UnsupportedError) as caught:
        emitted(TILE, HALVES, *rows(update(f"({first} + {WIDENED.format(second, ROW)})")))
    assert caught.value.code == "llvm.fragment.access"


SHAPES = {
    "llvm.fragment.shape": [
        f'S = T.alloc_buffer(({L}, 4), "float32", scope="fragment")',
        f'S = T.alloc_buffer((n, {L}, {L}), "float32", scope="fragment")',
        f'S = T.alloc_buffer(({L}, {L}), "float64", scope="fragment")',
    ],
    "llvm.fragment.registers": [f'S = T.alloc_buffer((5, {L}, {L}), "float32", scope="fragment")'],
}


@pytest.mark.parametrize(
    ("code", "line"), [(code, line) for code in SHAPES for line in SHAPES[code]]
)
def test_other_buffers_are_refused(emitted, code, line):
    with pytest.raises(UnsupportedError) as caught:
        emitted(line)
    assert caught.value.code == code


def test_a_target_without_matrix_registers_is_named(emitted):
    with pytest.raises(UnsupportedError) as caught:
        emitted(TILE, lowering=None)
    assert caught.value.code == "llvm.scope.fragment"


IN_STREAMING_MODE = {
    "llvm.streaming.allocate": (TILE, 'W = T.alloc_buffer((n,), "float32")', "W[0] = 1.0"),
    "llvm.streaming.gather": (TILE, f"B[T.ramp(0, 2, {L})] = A[{ROW}]"),
}


@pytest.mark.parametrize("code", IN_STREAMING_MODE)
def test_what_streaming_mode_lacks_is_refused(emitted, code):
    with pytest.raises(UnsupportedError) as caught:
        emitted(*IN_STREAMING_MODE[code])
    assert caught.value.code == code


CALLING = f"""
@T.prim_func
def part(begin: T.int64, end: T.int64, a: T.handle, n: T.int64) -> None:
    T.stage("flat")
    A = T.match_buffer(a, (n,), "float32")
    {TILE}
    for r in T.serial({L}):
        S[r, {ROW}] = A[{ROW}]
"""


@pytest.mark.parametrize(("extent", "is_refused"), [("n", False), ("n // T.vscale()", True)])
def test_vscale_beside_a_call_is_refused(sme, extent, is_refused):
    module = parse_module(f"""
@T.prim_func(entry=True)
def f(a: T.handle, n: T.int64) -> None:
    T.stage("flat")
    A = T.match_buffer(a, (n,), "float32")
    T.parallel_for("part", "i", {extent}, args=[a, n])
{CALLING}""")
    if not is_refused:
        assert "sme.za.enable" in emit_llvm_ir(module, target_info=sme, lowering=LOWERING)
        return
    with pytest.raises(UnsupportedError) as caught:
        emit_llvm_ir(module, target_info=sme, lowering=LOWERING)
    assert caught.value.code == "llvm.streaming.call"
