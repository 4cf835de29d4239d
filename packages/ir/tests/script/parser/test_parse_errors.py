"""Every error code of the parser has a script that raises it; carets point to the place."""

import re
from pathlib import Path

import pytest

import gossamer_ir.script
from gossamer_ir.errors import ParseError, VerifyError
from gossamer_ir.nodes import Const, Function, If, Let, Module, Unary, Var
from gossamer_ir.script import (
    T,
    parse_expr,
    parse_format,
    parse_function,
    parse_module,
    print_module,
)

HEAD = """@T.prim_func
def f(a: T.handle, p: T.handle, q: T.handle, n: T.int64, x: T.float32):
    I = T.sp.dense_fixed(n)
    J = T.sp.compressed_varied(I, n, (p, q))
    A = T.sp.match_buffer(a, (I, J), "float32")
"""

SUM = "f = T.comm_reducer(lambda a, b: a + b, T.float32(0))\n    "

BODIES = [
    ("unknown_name", "A[0, z] = 1.0"),
    ("unknown_call", "A[0, 0] = T.sinn(x)"),
    ("unknown_call", "A[0, 0] = open('/etc/passwd')"),
    ("unknown_call", "A[0, 0] = x.foo(1)"),
    ("arguments", "A[0, 0] = T.exp(x, y=1)"),
    ("arguments", "y = A.vload([0, 0], passthrough=x)"),
    ("arguments", "A.vstore([0, 0])"),
    ("list", "y = A.vload(0)"),
    ("not_a_buffer", "y = n.vload([0])"),
    ("statement", "A.vload([0, 0])"),
    ("unknown_call", "y = A.vstore([0, 0], x)"),
    ("unknown_call", "y = T.vload(A, 0, 0)"),
    ("vector", "y = T.get_active_lane_mask('bool', 0, n)"),
    ("vector", "y = T.get_active_lane_mask('int8x4', 0, n)"),
    ("vector", "y = T.get_active_lane_mask('boolx4', T.ramp(0, 1, 4), n)"),
    ("dtype_name", "y = T.get_active_lane_mask('uint1', 0, n)"),
    ("list", "with T.sp.iteration(I, 'S', 'it') as [i]:\n        pass"),
    ("string", "with T.sp.iteration([I], 1, 'it') as [i]:\n        pass"),
    ("integer", "A[0, 0] = T.lane_reduce('add', T.broadcast(x, n))"),
    ("bool", "K = T.sp.compressed_varied(I, n, (p, q), sorted=n)"),
    ("arithmetic", "A[0, 0] = 1 // 0"),
    ("arithmetic", "A[0, 0] = 2 ** 100000000"),
    ("arithmetic", "A[0, 0] = 1 << 100000000"),
    ("expression", "A[0, 0] = [x for x in x]"),
    ("expression", "A[0, 0] = (y := x)"),
    ("literal_dtype", "y = 1.5"),
    ("literal", "A[1.5, 0] = x"),
    ("literal", "A[0, 0] = True"),
    ("dtype", "A[0, 0] = x + T.float64(x)"),
    ("dtype", "A[0, 0] = n < 1"),
    ("dtype_name", "A[0, 0] = T.cast(x, 'float31')"),
    ("not_a_buffer", "n[0] = 1.0"),
    ("not_a_value", "A[0, 0] = A"),
    ("not_a_handle", "B = T.sp.match_buffer(n, (I,))"),
    ("not_an_axis", "B = T.sp.match_buffer(a, (n,))"),
    ("operator", "A[0, 0] = x ** 2"),
    ("operator", "if n in n:\n        pass"),
    ("chained_comparison", "if 0 < n < 5:\n        pass"),
    ("slice", "A[0, 0:4] = x"),
    ("search_kind", "A[0, T.search('near', A, 0, begin=0, end=n, value=0)] = x"),
    ("reducer", "A[0, 0] = T.lane_reduce('avg', x)"),
    ("reducer", "A[0, 0] = T.transpose_reduce('avg', x)"),
    ("arguments", "A[0, 0] = T.transpose_reduce()"),
    ("arguments", "A[0, 0] = T.transpose_reduce('add')"),
    ("arguments", "A[0, 0] = T.transpose_reduce('add', value=x)"),
    ("reducer", "f = T.comm_reducer(1, T.float32(0))"),
    ("reducer", "f = T.comm_reducer(lambda a, b: a + b, x)"),
    ("reducer", "f = T.comm_reducer(lambda a, b, c: a + b, T.float32(0))"),
    ("reducer", "f = T.comm_reducer(lambda a, b: (a, b), T.float32(0))"),
    ("literal_dtype", "f = T.comm_reducer(lambda a, b: a + b, 0.0)"),
    ("dtype", "f = T.comm_reducer(lambda a, b: n, T.float32(0))"),
    ("combine", f"{SUM}A[0, 0] = f(A[0, 0])"),
    ("combine", f"{SUM}A[0, 0] = f(A[0, 1], x)"),
    ("combine", f"{SUM}A[0, 0], A[0, 1] = f(A[0, 0], x)"),
    ("combine", f"{SUM}y = f(y, x)"),
    ("unknown_call", f"{SUM}A[0, 0] = A[0, 0] + f(A[0, 0], x)"),
    ("nested", f"if n > 0:\n        {SUM}pass"),
    ("lanes", "A[0, 0] = T.lane_reduce('add', T.broadcast(x, 0))"),
    ("dtype_name", "B = T.match_buffer(a, (n,), 'handle')"),
    ("dtype_name", "y: T.handle = a"),
    ("vector", "A[0, 0] = T.min_value('float32x4')"),
    ("lanes", "A[0, 0] = T.lane_reduce('add', T.broadcast(x, 10**30))"),
    ("vector", "A[0, 0] = T.lane_reduce('add', T.broadcast(T.broadcast(x, 4), 4))"),
    ("dtype_name", "A[0, 0] = T.cast(x, 'handle')"),
    ("attribute", "A[0, 0] = A.shape"),
    ("range", "for i in T.serial():\n        pass"),
    ("region", "with T.block('b'):\n        T.reads(A)"),
    ("annotation", "T.func_attr({'k': 1.5})"),
    ("stage", "T.stage('ssa')"),
    ("outside_block", "T.where(True)"),
    ("duplicate", "with T.block('b'):\n        T.where(True)\n        T.where(True)"),
    ("remap", "with T.block('b'):\n        vi = T.axis.remap('S', [n])"),
    ("target", "y = z = x"),
    ("kinds", "with T.sp.iteration([I], 'X', 'it') as [i]:\n        pass"),
    ("iteration_vars", "with T.sp.iteration([I], 'S', 'it') as [i, j]:\n        pass"),
    ("loop", "for i in [1, 2]:\n        pass"),
    ("thread", "for i in T.thread_binding(n, thread='lane'):\n        pass"),
    ("statement", "import os"),
    ("statement", "del x"),
    ("statement", "x"),
    ("with", "with open('f'):\n        pass"),
    ("nested", "if n < 1:\n        K = T.sp.dense_fixed(n)"),
    ("reassigned", "n = n + 1"),
    ("reassigned", "n += 1"),
    ("evaluate", "T.evaluate(x)"),
    ("element", "T.atomic_add(x, 1)"),
    ("scope", "B = T.sp.alloc_buffer((I,), scope='cache')"),
    ("fill", "B = T.sp.alloc_buffer((I,), default=x)"),
    ("strides", "B = T.match_buffer(a, (n, n), strides=[1, 1])"),
    ("strides", "B = T.match_buffer(a, (n, n), strides=[n, 1, 1])"),
    ("strides", "B = T.match_buffer(a, (n, 8), strides=[7, 1])"),
    ("strides", "B = T.match_buffer(a, (n, 8), strides=[0, 1])"),
    ("strides", "B = T.match_buffer(a, (n, 5), strides=[4, 3])"),
    ("strides", "B = T.match_buffer(a, (8, n), strides=[-8, 1])"),
    ("strides", "B = T.match_buffer(a, (2, 2, 4), strides=[4, 3, 1])"),
    ("strides", "B = T.match_buffer(a, (n,), strides=[2])\n    T.assume(monotone(B))"),
    ("alignment", "B = T.match_buffer(a, (n, n), align=-128)"),
    ("elem_offset", "B = T.match_buffer(a, (n, n), elem_offset=-4)"),
    ("axis_shape", "K = T.sp.compressed_fixed(I, n, q)"),
    ("axis_data", "K = T.sp.compressed_varied(I, n, (p,))"),
    ("assumption", "T.sp.assume(monotone(I))"),
    ("domain", "T.assume_buffer_domain(A, [0])"),
    ("map", "T.sp.map(n)"),
    ("depth", "if " + " and ".join(["n < 1"] * 500) + ":\n        pass"),
    ("depth", "y = " + "-" * 400 + "n"),
    ("depth", "y = " + "n + " * 5000 + "n"),
    ("depth", "y = " + "(" * 500 + "n" + ")" * 500),
    (
        "depth",
        "".join("    " * i + "if n < 1:\n" + "    " for i in range(120)) + "    " * 120 + "pass",
    ),
    ("syntax", "if n <"),
]

TEXTS = [
    ("syntax", "def f(:"),
    ("syntax", "a\0b"),
    ("empty", "import os"),
    ("decorator", "def f(n: T.int64):\n    pass"),
    ("top_level", "@T.prim_func\ndef f(n: T.int64):\n    pass\nprint(1)"),
    ("parameter", "@T.prim_func\ndef f(n):\n    pass"),
    ("parameter", "@T.prim_func\ndef f(*n: T.int64):\n    pass"),
    ("parameter", "@T.prim_func\ndef f(n: T.int64 = 5):\n    pass"),
    ("parameter", "@T.prim_func\ndef f(n: T.int64, n: T.int64):\n    pass"),
    ("entry", "@T.prim_func\ndef f():\n    pass\n@T.prim_func\ndef g():\n    pass"),
    ("size", "#" * 9_000_000),
    (
        "depth",
        "@T.prim_func\ndef f(n: T.int64):\n    if n < 1:\n        pass\n"
        + 400 * "    elif n < 2:\n        pass\n",
    ),
]


def code_of(text):
    with pytest.raises(ParseError) as caught:
        parse_module(text)
    return caught.value


@pytest.mark.parametrize(("code", "body"), BODIES)
def test_a_wrong_statement_has_its_code_and_a_caret(code, body):
    error = code_of(f"{HEAD}    {body}\n")
    assert error.code == f"parse.{code}"
    assert error.diagnostics[0].message.endswith(".")
    assert code == "depth" or "^" in error.text


@pytest.mark.parametrize(("code", "text"), TEXTS)
def test_a_wrong_text_has_its_code(code, text):
    assert code_of(text).code == f"parse.{code}"


def test_carets_stand_under_the_wrong_name():
    error = code_of(HEAD + "    A[0, ü] = 1.0\n")
    assert error.text == "line 6:\n        A[0, ü] = 1.0\n             ^"
    assert "Names here: a, p, q, n, x, I, J, A." in str(error)


def test_carets_of_a_function_object_name_its_file_and_line():
    def wrong(n: T.int64):
        y = m + 1  # noqa: F821, F841

    with pytest.raises(ParseError) as caught:
        parse_function(wrong)
    assert re.match(r".*test_parse_errors\.py:\d+:\n", caught.value.text)
    assert caught.value.text.endswith("^")


def test_a_misspelled_call_names_the_nearest():
    assert "T.thread_binding" in str(
        code_of(HEAD + "    for i in T.thread_bindin(n):\n        pass\n")
    )


def test_code_without_source_says_so():
    scope = {}
    exec("def f(n): pass", scope)
    with pytest.raises(ParseError) as caught:
        parse_function(scope["f"])
    assert caught.value.code == "parse.no_source"


def test_a_function_with_a_body_is_no_format():
    with pytest.raises(ParseError) as caught:
        parse_format("@T.format\ndef f(n: T.int64):\n    y = n + 1\n")
    assert caught.value.code == "parse.format"


@pytest.mark.parametrize("text", ["x = 1", "a; b"])
def test_what_is_not_an_expression_is_refused(text):
    with pytest.raises(ParseError):
        parse_expr(text, {"a": "int64"})


def nested(*, exprs: int = 0, stmts: int = 0) -> Module:
    value = Var("n", "int64")
    for _ in range(exprs):
        value = Unary("neg", value)
    body = (Let(Var("y", "int64"), value),)
    for _ in range(stmts):
        body = (If(Const("bool", "True"), body),)
    return Module("loop", (Function("f", (), body),), "f")


@pytest.mark.parametrize("depth", [{"exprs": 5000}, {"stmts": 110}])
def test_a_module_too_deep_for_text_is_refused(depth):
    with pytest.raises(VerifyError) as caught:
        print_module(nested(**depth))
    assert caught.value.code == "print.depth"


def test_the_table_pins_every_code_of_the_package():
    folder = Path(gossamer_ir.script.__file__).parent
    source = "\n".join(path.read_text() for path in sorted(folder.rglob("*.py")))
    used = set(
        re.findall(r'error\(\s*"([a-z_]+)"|"parse\.([a-z_]+)"|_at\(source, "([a-z_]+)"', source)
    )
    codes = {next(part for part in groups if part) for groups in used}
    pinned = {code for code, _ in (*BODIES, *TEXTS)} | {"no_source", "format"}
    assert codes == pinned


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ("(I, J)", "(I, JJ)", "'JJ' is not defined here. Did you mean 'J'?"),
        ("(I, J)", "(I, rows)", "Names here: a, p, q, n, x, I, J."),
        ("T.sp.dense_fixed", "T.sp.dense_fixd", "Did you mean T.sp.dense_fixed"),
        ("T.sp.dense_fixed", "dense_fixed", "A script calls members of T"),
    ],
)
def test_a_misspelled_name_is_compared_with_those_that_exist(old, new, hint):
    with pytest.raises(ParseError, match=re.escape(hint)):
        parse_module(f"{HEAD}    pass\n".replace(old, new))


def test_no_name_is_suggested_where_there_is_none():
    script = """
@T.prim_func
def f() -> None:
    T.func_attr({"sparse_tir_level": 0})
    if nine < 2:
        pass
"""
    with pytest.raises(ParseError, match="Names here: none"):
        parse_module(script)
