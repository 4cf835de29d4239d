"""Programs as published: the spelling of the RFC and of the paper, at all stages."""

import inspect
import textwrap

import pytest

from gossamer_ir.nodes import (
    AttachAxis,
    Block,
    Cast,
    CompressedFixed,
    CompressedVaried,
    DenseFixed,
    DenseVaried,
    For,
    FuseAxes,
    InRange,
    Iteration,
    Load,
    OverAxis,
    Range,
    Store,
    Var,
)
from gossamer_ir.script import (
    T,
    parse_format,
    parse_function,
    parse_module,
    print_expr,
    print_module,
)
from gossamer_ir.traversal.walk import walk

RFC = """
@T.prim_func
def sddmm(
    a: T.handle, b: T.handle, x: T.handle, y: T.handle, indptr: T.handle, indices: T.handle,
    m: T.int32, n: T.int32, feat_size: T.int32, nnz: T.int32,
) -> None:
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    # sparse iterators
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32")
    J_detach = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(feat_size)
    A = T.sp.match_buffer(a, (I, K), "float32")
    B = T.sp.match_buffer(b, (J_detach, K), "float32")
    X = T.sp.match_buffer(x, (I, J), "float32")
    Y = T.sp.match_buffer(y, (I, J), "float32")
    with T.sp.iteration([I, J, K], "SSR", "sddmm") as [i, j, k]:
        with T.init():
            Y[i, j] = 0.0
        Y[i, j] = Y[i, j] + A[i, k] * B[j, k] * X[i, j]
"""

PAPER = (
    RFC.replace("T.sp.compressed_varied", "T.sparse_variable")
    .replace("T.sp.dense_fixed", "T.dense_fixed")
    .replace("T.sp.match_buffer", "T.match_sparse_buffer")
    .replace("T.sp.iteration", "T.sp_iter")
)

POSITION = """
@T.prim_func
def bsrmm(
    a: T.handle, b: T.handle, c: T.handle, indptr: T.handle, indices: T.handle,
    nb: T.int32, mb: T.int32, nnzb: T.int32, blk: T.int32, feat_size: T.int32,
) -> None:
    # function attr dict
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 1})
    I = T.sp.dense_fixed(nb, idtype="int32")
    J = T.sp.compressed_varied(I, (mb, nnzb), (indptr, indices), idtype="int32", sorted=True)
    J_dense = T.sp.dense_varied(I, (mb, nnzb), indptr, idtype="int32")
    J_detach = T.sp.dense_fixed(mb, idtype="int32")
    BI = T.sp.dense_fixed(blk, idtype="int32")
    BJ = T.sp.dense_fixed(blk, idtype="int32")
    F = T.sp.dense_fixed(feat_size, idtype="int32")
    A = T.sp.match_buffer(a, [I, J, BI, BJ], dtype="float32")
    B = T.sp.match_buffer(b, [J_detach, BJ, F], dtype="float32")
    C = T.sp.match_buffer(c, [I, BI, F], dtype="float32")
    J_indptr = T.sp.match_buffer(indptr, [I], dtype="int32", extra_storage=1)
    J_indices = T.sp.match_buffer(indices, [I, J_dense], dtype="int32")
    # body
    T.assume_buffer_domain(J_indptr, [0, nnzb])
    T.assume_buffer_domain(J_indices, [0, mb])
    for i, bi, bj, f in T.grid(nb, blk, blk, feat_size):
        with T.block("bsrmm0"):
            vi, vbi, vbj, vf = T.axis.remap("SSRS", [i, bi, bj, f])
            T.reads(
                J_indptr[vi : vi + 2], A[vi, 0:mb, vbi, vbj], B[0:mb, vbj, vf], J_indices[vi, 0:mb]
            )
            T.writes(C[vi, vbi, vf])
            T.block_attr({"sparse": True})
            with T.init():
                C[vi, vbi, vf] = T.float32(0)
            for j in T.serial(J_indptr[vi + 1] - J_indptr[vi]):
                with T.block("bsrmm1"):
                    vj = T.axis.reduce(mb, j)
                    T.reads(A[vi, vj, vbi, vbj], B[J_indices[vi, vj], vbj, vf], J_indices[vi, vj])
                    T.writes(C[vi, vbi, vf])
                    T.block_attr({"sparse": True})
                    C[vi, vbi, vf] = (
                        C[vi, vbi, vf] + A[vi, vj, vbi, vbj] * B[J_indices[vi, vj], vbj, vf]
                    )
"""

LOOP = """
@T.prim_func
def bsrmm(
    a: T.handle, b: T.handle, c: T.handle, indptr: T.handle, indices: T.handle,
    nb: T.int32, mb: T.int32, nnzb: T.int32, blk: T.int32, feat_size: T.int32,
) -> None:
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 0})
    A_data = T.match_buffer(a, [nnzb, blk, blk], dtype="float32", strides=[1])
    B_data = T.match_buffer(b, [mb, blk, feat_size], dtype="float32", strides=[1])
    C_data = T.match_buffer(c, [nb, blk, feat_size], dtype="float32", strides=[1])
    J_indptr_data = T.match_buffer(indptr, [nb + 1], dtype="int32", strides=[1])
    J_indices_data = T.match_buffer(indices, [nnzb], dtype="int32", strides=[1])
    for i, bi, bj, f in T.grid(nb, blk, blk, feat_size):
        with T.block("bsrmm0"):
            vi, vbi, vbj, vf = T.axis.remap("SSRS", [i, bi, bj, f])
            T.reads(J_indptr_data[0 : nb + 1], A_data[0:nnzb, 0:blk, 0:blk])
            T.writes(C_data[vi, vbi, vf])
            with T.init():
                C_data[vi, vbi, vf] = T.float32(0)
            for j in T.serial(J_indptr_data[vi + 1] - J_indptr_data[vi]):
                with T.block("bsrmm1"):
                    vj = T.axis.reduce(mb, j)
                    C_data[vi, vbi, vf] = (
                        C_data[vi, vbi, vf]
                        + A_data[(vj + J_indptr_data[vi]), vbi, vbj]
                        * B_data[J_indices_data[vj + J_indptr_data[vi]], vbj, vf])
"""


@pytest.mark.parametrize("text", [RFC, PAPER, POSITION, LOOP], ids=["rfc", "paper", "II", "III"])
def test_published_program_survives_print_and_parse(text):
    module = parse_module(text)
    assert parse_module(print_module(module)) == module


def test_both_spellings_are_one_module():
    assert parse_module(PAPER) == parse_module(RFC)
    assert "sparse_variable" not in print_module(parse_module(PAPER))


@pytest.mark.parametrize(
    ("text", "stage"), [(RFC, "coordinate"), (POSITION, "position"), (LOOP, "loop")]
)
def test_level_names_the_stage_and_is_no_annotation(text, stage):
    module = parse_module(text)
    assert module.stage == stage
    expected = (("global_symbol", "main"), ("tir.noalias", True))
    assert module.functions[0].annotations == expected


def test_sizes_are_int64_whatever_their_spelling():
    params = {param.name: param.dtype for param in parse_module(RFC).functions[0].params}
    assert params["m"] == params["nnz"] == params["feat_size"] == "int64"
    assert params["indptr"] == "handle"


def test_index_storage_is_widened_at_the_load():
    loops = [node for node in walk(parse_module(POSITION)) if isinstance(node, For)]
    extent = loops[-1].extent
    assert isinstance(extent.lhs, Cast)
    assert isinstance(extent.lhs.value, Load)
    assert extent.lhs.value.dtype == "int32"


def test_published_domain_of_an_indptr_includes_its_end():
    facts = parse_module(POSITION).functions[0].facts
    ends = {fact.buffer: print_expr(fact.high) for fact in facts if isinstance(fact, InRange)}
    assert ends == {"J_indptr": "nnzb + 1", "J_indices": "mb"}


def test_slices_of_regions_are_start_and_extent():
    block = next(node for node in walk(parse_module(POSITION)) if isinstance(node, Block))
    first = block.reads[0].ranges[0]
    assert first == Range(Var("vi", "int64"), first.extent)
    assert first.extent.text == "2"


def test_names_become_identifiers_and_unique():
    text = RFC.replace('"sddmm") as', '"rgcn-forward") as').replace("[i, j, k]", "[m, j, k]", 1)
    buffer = next(
        node
        for node in walk(parse_module(text.replace("[i,", "[m,")))
        if isinstance(node, Iteration)
    )
    assert buffer.name == "rgcn_forward"
    assert buffer.vars == ("m_1", "j", "k")


AXES = """
@T.prim_func
def f(p: T.handle, q: T.handle, a: T.handle, m: T.int64, n: T.int64, nnz: T.int64, c: T.int64):
    I = T.sp.dense_fixed(m)
    J = {axis}
"""


@pytest.mark.parametrize(
    ("axis", "kind"),
    [
        ("T.sp.dense_fixed(n, parent=I)", DenseFixed),
        ("T.dense_fixed(n, 'int32')", DenseFixed),
        ("T.sp.dense_varied(I, n, p)", DenseVaried),
        ("T.sp.dense_varied(I, (n, nnz), p, 'int64')", DenseVaried),
        ("T.dense_variable(I, (n, nnz), p, idtype='int32')", DenseVaried),
        ("T.sp.compressed_fixed(I, (n, c), q, padded=False)", CompressedFixed),
        ("T.sparse_fixed(I, (n, 4), q, idtype='int32')", CompressedFixed),
        ("T.sp.compressed_varied(I, n, (p, q), unique=False)", CompressedVaried),
        ("T.sparse_variable(I, (n, nnz), (p, q), idtype='int64', sorted=False)", CompressedVaried),
    ],
)
def test_axes_in_every_published_form(axis, kind):
    module = parse_module(AXES.format(axis=axis))
    assert type(module.functions[0].axes[1]) is kind
    assert parse_module(print_module(module)) == module


def test_storage_dtypes_and_flags_of_an_axis():
    text = AXES.format(
        axis="T.sp.compressed_varied(I, (n, nnz), (p, q), indptr_dtype='int64', "
        "indices_dtype='uint16', padded=True)"
    )
    axis = parse_module(text).functions[0].axes[1]
    assert (axis.indptr_dtype, axis.indices_dtype) == ("int64", "uint16")
    assert (axis.sorted, axis.unique, axis.padded) == (True, True, True)


@pytest.mark.parametrize("prefix", ["T.sp.", "T."])
def test_fuse_and_attach_in_both_spellings(prefix):
    text = AXES.format(axis="T.sp.compressed_varied(I, n, (p, q))") + (
        "    A = T.sp.match_buffer(a, (I, J), default=1.0)\n"
        f"    with T.sp.iteration([{prefix}fuse(I, J), {prefix}attach(J, I)], 'SSS', 'x') "
        "as [i, j, k]:\n"
        "        A[i, j] = 1\n"
    )
    iteration = parse_module(text).functions[0].body[0]
    assert iteration.axes == (FuseAxes(("I", "J")), AttachAxis("J", "I"))
    assert iteration.body[0].value.text == "1.0"


def test_captured_numbers_and_strings_of_a_decorated_function():
    block_size, dtype = 4, "float64"

    @T.prim_func
    def scale(x: T.handle, n: T.int32) -> None:
        """A docstring."""
        X = T.match_buffer(x, (n, block_size * 2), dtype)
        for i in range(n):
            X[i, block_size - 1] *= block_size

    assert scale.stage == "loop"
    store = next(node for node in walk(scale) if isinstance(node, Store))
    assert store.value.rhs.text == "4.0"
    assert scale.functions[0].buffers[0].dtype == "float64"
    assert scale.functions[0].buffers[0].shape[1].text == "8"


def test_text_and_function_object_give_one_module():
    def source(x: T.handle, n: T.int64) -> None:
        X = T.match_buffer(x, (n,), "float32")
        for i in T.serial(n):
            X[i] = T.Select(i < 2, 1.0, T.float32("inf"))

    text = "@T.prim_func\n" + textwrap.dedent(inspect.getsource(source))
    assert parse_module(text) == parse_function(source)


def test_annotated_buffer_binds_a_handle_of_that_name():
    module = parse_module("""
@T.prim_func
def f(A: T.Buffer((m, 4), "float32"), m: T.int32):
    for i in T.serial(m):
        A[i, 0] = 1.0
""")
    function = module.functions[0]
    assert [param.name for param in function.params] == ["A", "m"]
    assert function.buffers[0].name == "A_buffer"
    assert function.buffers[0].handle == "A"
    assert parse_module(print_module(module)) == module


BSR = """
@T.prim_func
def bsr(
    a: T.handle, indptr: T.handle, indices: T.handle,
    m: T.int32, n: T.int32, nnz: T.int32, block_size: T.var("int32"),
) -> None:
    IO = T.sp.dense_fixed(m)
    JO = T.sp.compressed_varied(IO, (n, nnz), (indptr, indices), "int32")
    II = T.sp.dense_fixed(block_size)
    JI = T.sp.dense_fixed(block_size)
    A = T.sp.match_buffer(a, (IO, JO, II, JI), "float32")
    T.func_attr({
        "inv_idx_map": (lambda io, jo, ii, ji: (io * block_size + ii, jo * block_size + ji)),
    })
    pass
"""


MAP = "io * block_size + ii, jo * block_size + ji"


@pytest.mark.parametrize("text", [BSR, BSR.replace(f"({MAP})", MAP)], ids=["tuple", "published"])
def test_published_format_description_with_its_map(text):
    description = parse_format(text)
    assert description.buffer.axes == ("IO", "JO", "II", "JI")
    assert [print_expr(result) for result in description.map.results] == [
        "io * block_size + ii",
        "jo * block_size + ji",
    ]


def test_iteration_over_axes_keeps_their_order():
    iteration = parse_module(RFC).functions[0].body[0]
    assert iteration.axes == (OverAxis("I"), OverAxis("J"), OverAxis("K"))
    assert iteration.kinds == "SSR"


VECTORS = """
@T.prim_func
def vectors(x: T.handle, y: T.handle, flags: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n, 4), "float32")
    F = T.match_buffer(flags, (n,), "bool")
"""
LANES = "4 * T.vscale()"
RUN = f"T.ramp(n, 1, {LANES})"
MASK = f"T.ramp(3, 1, {LANES}) < T.broadcast(n, {LANES})"
GIVEN_MASK = 'T.get_active_lane_mask("boolxvscalex4", 3, n)'


@pytest.mark.parametrize(
    ("published", "spelling"),
    [
        (f"X.vstore([{RUN}], X.vload([{RUN}]))", f"X[{RUN}] = X[{RUN}]"),
        (
            f"X.vstore([{RUN}], 1.0, predicate={GIVEN_MASK})",
            f"T.store(X, {RUN}, value=1.0, predicate={MASK})",
        ),
        (
            f"v = X.vload([{RUN}], predicate={GIVEN_MASK})",
            f"v = T.load(X, {RUN}, predicate={MASK}, passthrough=T.broadcast(0.0, {LANES}))",
        ),
        (
            f"v = F.vload([{RUN}], {GIVEN_MASK}, False)",
            f"v = T.load(F, {RUN}, predicate={MASK}, passthrough=False)",
        ),
        (
            "v = Y.vload([n, 2], predicate=n > 1)",
            "v = T.load(Y, n, 2, predicate=n > 1, passthrough=0.0)",
        ),
        ('m = T.get_active_lane_mask("uint1x8", n, 5)', "m = T.ramp(n, 1, 8) < T.broadcast(5, 8)"),
        ("v = T.Broadcast(T.int64(2), 4)", "v = T.broadcast(2, 4)"),
        ("v = T.Ramp(n, 2, 4)", "v = T.ramp(n, 2, 4)"),
    ],
)
def test_vectors_in_the_spelling_of_tvm(published, spelling):
    module = parse_module(f"{VECTORS}    {published}\n")
    assert module == parse_module(f"{VECTORS}    {spelling}\n")
    assert parse_module(print_module(module)) == module
