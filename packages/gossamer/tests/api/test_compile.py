"""`gossamer.compile` for programs in every form, and the names of the public API."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import sparse

import gossamer as gs
from gossamer.api.compile import to_module
from gossamer.operator_calls.operator_program import Variant, module_of
from gossamer.operators import NAMES, operator_named
from gossamer.operators.spmm import SCRIPT
from gossamer_ir.errors import ParseError, ScheduleError, UserError, VerifyError
from gossamer_ir.interchange.records import Schedule, Step
from gossamer_ir.nodes import Function, Module, OverAxis
from gossamer_ir.script import T
from gossamer_testkit.matrices.oracles import max_relative_error, tolerance

MATRIX = sparse.random_array((20, 30), density=0.3, rng=np.random.default_rng(1), format="csr")
DENSE = np.random.default_rng(2).integers(-3, 4, size=(30, 5)).astype(np.float64)


def product(kernel, *, features=5):
    out = np.full((20, features), np.nan)
    kernel(a=MATRIX.data, b=DENSE, c=out, indptr=MATRIX.indptr, indices=MATRIX.indices)
    return out


def require_product(result):
    error = max_relative_error(result, MATRIX @ DENSE, magnitude=MATRIX @ abs(DENSE))
    assert error <= tolerance(2 * 30, "float64")


def retyped():
    return {"dtypes": dict.fromkeys("ABC", "float64")}


@pytest.mark.parametrize("specialize", [{}, {"feat_size": 5}, {"feat_size": 5, "m": 20, "n": 30}])
def test_a_script_is_compiled_with_symbolic_and_with_given_sizes(specialize):
    kernel = gs.compile(SCRIPT, specialize=specialize, **retyped())
    require_product(product(kernel))
    left = {param.name for param in kernel.signature.scalars}
    assert left == {"m", "n", "nnz", "feat_size"} - set(specialize)


PAPER = (
    SCRIPT.replace("T.sp.compressed_varied", "T.sparse_variable")
    .replace("T.sp.dense_fixed", "T.dense_fixed")
    .replace("T.sp.match_buffer", "T.match_sparse_buffer")
    .replace("T.sp.iteration", "T.sp_iter")
)


def test_the_spelling_of_the_paper_is_the_same_program():
    assert PAPER != SCRIPT
    assert to_module(PAPER) == to_module(SCRIPT)
    require_product(product(gs.compile(PAPER, **retyped())))


def plain_product(
    a: T.handle,
    b: T.handle,
    c: T.handle,
    indptr: T.handle,
    indices: T.handle,
    m: T.int64,
    n: T.int64,
    k: T.int64,
    nnz: T.int64,
) -> None:
    T.func_attr({"sparse_tir_level": 2})
    R = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(R, (n, nnz), (indptr, indices), "int32")
    J_detach = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(k)
    A = T.sp.match_buffer(a, (R, J), "float64")
    B = T.sp.match_buffer(b, (J_detach, K), "float64")
    C = T.sp.match_buffer(c, (R, K), "float64")
    with T.sp.iteration([R, J, K], "SRS", "product") as [r, j, f]:
        with T.init():
            C[r, f] = 0.0
        C[r, f] = C[r, f] + A[r, j] * B[j, f]


@pytest.mark.parametrize("decorate", [T.prim_func, lambda function: function])
def test_a_function_is_compiled_decorated_or_not(decorate):
    kernel = gs.compile(decorate(plain_product))
    require_product(product(kernel))


def test_a_module_is_compiled():
    module = module_of(operator_named("spmm").program, Variant("float64", features=5))
    require_product(product(gs.compile(module)))


def test_a_kernel_checks_what_it_is_given():
    kernel = gs.compile(SCRIPT, **retyped())
    indices = MATRIX.indices.copy()
    indices[7] = 30
    out = np.full((20, 5), 7.0)
    with pytest.raises(UserError, match="indices"):
        kernel(a=MATRIX.data, b=DENSE, c=out, indptr=MATRIX.indptr, indices=indices)
    assert (out == 7).all()


@pytest.mark.parametrize("program", [7, None, b"text", [SCRIPT]])
def test_what_is_not_a_program_is_refused(program):
    with pytest.raises(UserError, match=f"is of type {type(program).__name__}") as caught:
        gs.compile(program)
    assert caught.value.code == "compile.program"


STEP = Step("split", {"loop": "i", "factors": (None, 4)})
BAD_OPTIONS = [
    ("target.type", {"target": 5}),
    ("target.syntax", {"target": ""}),
    ("compile.schedule", {"schedule": {"loop": []}}),
    ("wire.field", {"schedule": Schedule(loop=("split",))}),
    ("wire.field", {"schedule": Schedule(loop=(replace(STEP, args=5),))}),
    ("compile.names", {"specialize": {"m": "x"}}),
    ("compile.names", {"specialize": 5}),
    ("compile.names", {"dtypes": {"A": None}}),
]


@pytest.mark.parametrize(("code", "options"), BAD_OPTIONS)
def test_options_of_other_types_are_refused(code, options):
    with pytest.raises(UserError) as caught:
        gs.compile(SCRIPT, **options)
    assert caught.value.code == code


@pytest.mark.parametrize("stmt", [None, 5, "text"])
def test_a_module_of_what_is_no_node_is_refused(stmt):
    with pytest.raises(UserError):
        gs.compile(Module("loop", (Function("f", (), (stmt,)),), "f"))


def with_iteration(**fields):
    """The program of `spmm` with changed fields of its iteration."""
    module = to_module(SCRIPT)
    (function,) = module.functions
    body = (replace(function.body[0], **fields),)
    return replace(module, functions=(replace(function, body=body),))


@pytest.mark.parametrize(
    "program",
    [with_iteration(axes=(OverAxis("nowhere"),) * 3), with_iteration(vars=("i",))],
    ids=["an axis that is none", "too few variables"],
)
def test_rules_do_not_see_wrong_modules(program):
    with pytest.raises(VerifyError):
        gs.compile(program)


@pytest.mark.parametrize("size", ["m", "n", "nnz", "feat_size"])
def test_negative_sizes_are_refused(size):
    with pytest.raises(VerifyError, match="A size is -1; expected 0 or more"):
        gs.compile(SCRIPT, specialize={size: -1})


def test_a_script_with_an_error_is_refused():
    with pytest.raises(ParseError):
        gs.compile(SCRIPT.replace("T.sp.dense_fixed(m)", "T.sp.dens_fixed(m)"))


@pytest.mark.parametrize("name", NAMES)
def test_operators_are_found_by_name(name):
    assert operator_named(name).name == name


def test_an_unknown_operator_lists_those_there_are():
    with pytest.raises(
        UserError, match="'solve' is not an operator; expected one of spmm, spmv, "
    ) as caught:
        operator_named("solve")
    assert caught.value.code == "operator.unknown"


def test_names_are_complete_and_unknown_ones_raise():
    assert {name for name in gs.__all__ if getattr(gs, name) is not None} == set(gs.__all__)
    assert {name for name in dir(gs) if not name.startswith("__")} == {*gs.__all__} - {
        "__version__"
    }
    with pytest.raises(AttributeError, match="no attribute 'spmmm'"):
        _ = gs.spmmm


def test_importing_is_light():
    heavy = ("llvmlite", "scipy", "typer", "rich", "numba", "gossamer_lower", "gossamer_schedule")
    code = f"import sys, gossamer; print([m for m in {heavy} if m in sys.modules])"
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert process.stdout.strip() == "[]"


def test_a_trace_for_a_stage_that_has_passed_is_refused():
    text = """
@T.prim_func
def fill(x: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n,), "float32")
    for i in T.serial(n):
        X[i] = 1.0
"""
    step = Step("split", {"loop": "i", "factors": (None, 2)})
    with pytest.raises(ScheduleError) as caught:
        gs.compile(text, schedule=Schedule(coordinate=(step,)))
    assert caught.value.code == "schedule.passed_stage"
