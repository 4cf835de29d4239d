"""The statements that test a range of rows of the index arrays of a compressed axis."""

from __future__ import annotations

from textwrap import indent
from typing import Any

from gossamer_ir.core.dtypes import DType
from gossamer_ir.facts.index_arrays import TESTED_BYTES
from gossamer_ir.nodes import Stmt
from gossamer_ir.script import parse_module, print_expr
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import Namer
from gossamer_lower.host.index_array_tests.row_loop import CompressedArrays

OFFSET_LANES = 16
"""Lanes of a vector of offsets: few, since a range of long rows has few of them."""


def row_tests(arrays: CompressedArrays, first: str, last: str, *, namer: Namer) -> tuple[Stmt, ...]:
    """Return the statements that test rows first, ..., last - 1, which are at least one: whether their
    offsets never decrease and are in [0, nnz], and whether their indices are in [0, columns).

    The last vector of a range overlaps the one before it, which costs less than a mask."""
    bits = DType.parse(arrays.indices.dtype).bits
    names = {name: namer.fresh(name) for name in _LOCAL_NAMES}
    lanes, wide = OFFSET_LANES, 8 * TESTED_BYTES // bits
    texts = {
        **names,
        "first": first,
        "last": last,
        "lanes": lanes,
        "wide": wide,
        "wrongs": f"{names['wrong']}[T.ramp(0, 1, {lanes})]",
        "mosts": f"{names['most']}[T.ramp(0, 1, {wide})]",
        "unsigned": f"u{arrays.indices.dtype}",
        "vector": f"u{arrays.indices.dtype}x{wide}",
        # A negative index is a large unsigned number,
        # which must be too large also where all others are allowed.
        "limit": f"T.min({print_expr(arrays.columns)}, {2 ** min(bits - 1, 62)})",
    }
    return _parse_template(_ROW_TESTS, arrays, texts, scalars=(first, last))


def end_test(arrays: CompressedArrays) -> tuple[Stmt, ...]:
    """Return the statement that tests whether the offsets begin with 0 and end with nnz."""
    return _parse_template(_END_TEST, arrays, {})


def _parse_template(
    template: str, arrays: CompressedArrays, texts: dict[str, Any], *, scalars: tuple[str, ...] = ()
) -> tuple[Stmt, ...]:
    """Return the statements of a template, as part of a function with buffers of these names."""
    indptr, indices = arrays.indptr, arrays.indices
    sizes = sorted(free_vars(arrays.rows, arrays.columns, arrays.nnz))
    params = ["p: T.handle", "x: T.handle", *(f"{name}: T.int64" for name in (*sizes, *scalars))]
    rows, nnz = print_expr(arrays.rows), print_expr(arrays.nnz)
    body = template.format(P=indptr.name, X=indices.name, rows=rows, nnz=nnz, **texts)
    source = (
        f"@T.prim_func\ndef test({', '.join(params)}) -> None:\n"
        '    T.stage("flat")\n'
        f'    {indptr.name} = T.match_buffer(p, ({rows} + 1,), "{indptr.dtype}")\n'
        f'    {indices.name} = T.match_buffer(x, ({nnz},), "{indices.dtype}")\n'
        f"{indent(body, '    ')}"
    )
    (function,) = parse_module(source).functions
    return function.body


_LOCAL_NAMES = ("wrong", "t", "at", "tail", "r", "begin", "end", "most", "u", "p", "greatest")

_END_TEST = "T.guard(T.int64({P}[0]) == 0 and T.int64({P}[{rows}]) == {nnz}, {P})\n"

_ROW_TESTS = """\
{wrong} = T.alloc_buffer(({lanes},), "bool", scope="local")
{wrongs} = T.broadcast(T.bool(False), {lanes})
for {t} in T.serial(({last} - {first}) // {lanes}):
    {at}: T.int64 = {first} + {t} * {lanes}
    {wrongs} = {wrongs} or {P}[T.ramp({at} + 1, 1, {lanes})] < {P}[T.ramp({at}, 1, {lanes})]
if {last} - {first} >= {lanes}:
    {tail}: T.int64 = {last} - {lanes}
    {wrongs} = {wrongs} or {P}[T.ramp({tail} + 1, 1, {lanes})] < {P}[T.ramp({tail}, 1, {lanes})]
else:
    for {r} in T.serial({first}, {last}):
        {wrong}[0] = {wrong}[0] or {P}[{r} + 1] < {P}[{r}]
T.guard(not T.lane_reduce("or", {wrongs}), {P})
{begin}: T.int64 = T.int64({P}[{first}])
{end}: T.int64 = T.int64({P}[{last}])
T.guard({begin} >= 0 and {end} <= {nnz}, {P})
{most} = T.alloc_buffer(({wide},), "{unsigned}", scope="local")
{mosts} = T.broadcast(T.{unsigned}(0), {wide})
for {u} in T.serial(({end} - {begin}) // {wide}):
    {mosts} = T.max(
        {mosts}, T.reinterpret({X}[T.ramp({begin} + {u} * {wide}, 1, {wide})], "{vector}")
    )
if {end} - {begin} >= {wide}:
    {mosts} = T.max({mosts}, T.reinterpret({X}[T.ramp({end} - {wide}, 1, {wide})], "{vector}"))
else:
    for {p} in T.serial({begin}, {end}):
        {most}[0] = T.max({most}[0], T.reinterpret({X}[{p}], "{unsigned}"))
{greatest}: T.uint64 = T.uint64(T.lane_reduce("max", {mosts}))
T.guard({begin} == {end} or {greatest} < T.uint64({limit}), {X})
"""
