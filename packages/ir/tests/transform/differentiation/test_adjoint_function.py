"""Adjoints of programs: their gradients are those of the program, and what has none is refused by name."""

import numpy as np
import pytest
from gradient_checks import checked_gradients

from gossamer_ir.errors import ArgumentError, UnsupportedError
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.transform.differentiation.adjoint_function import adjoint_module
from gossamer_ir.verify import verify

INDPTR = np.array([0, 2, 2, 5, 6], np.int32)
INDICES = np.array([0, 3, 1, 2, 4, 0], np.int32)
SIZES = {"m": 4, "n": 5, "k": 3}
RNG = np.random.default_rng(1)


def adjoint_of(module, **options):
    return verify(adjoint_module(module, **options))


def names_of(module):
    return [param.name for param in module.functions[0].params]


def program(body, buffers):
    """A program over CSR with rows I, columns J, all columns N and features K; buffers are texts such as
    `A: I, J`, those of an upper-case handle `a`."""
    handles = "".join(f"{name.lower()}: T.handle, " for name in buffers)
    matched = "\n".join(
        f'    {name} = T.sp.match_buffer({name.lower()}, ({axes},), "float64")'
        for name, axes in buffers.items()
    )
    inner = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    return parse_module(f"""
@T.prim_func
def f({handles}p: T.handle, q: T.handle, m: T.int64, n: T.int64, k: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 2}})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, n, (p, q), "int32")
    N = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(k)
{matched}
{inner}
""")


def arguments_of(buffers, *, positive=False):
    lengths = {"I": 4, "N": 5, "K": 3}
    arrays = {}
    for name, axes in buffers.items():
        names = axes.replace(" ", "").split(",")
        shape = (6,) if names[:2] == ["I", "J"] else tuple(lengths[axis] for axis in names)
        if names[:2] == ["I", "J"]:
            shape = (6 * int(np.prod([lengths[axis] for axis in names[2:]] or [1])),)
        values = RNG.standard_normal(shape)
        arrays[name.lower()] = np.abs(values) + 0.5 if positive else values
    return {**arrays, "p": INDPTR, "q": INDICES, **SIZES}


SPMM = """
with T.sp.iteration([I, J, K], "SRS", "product") as [i, j, c]:
    with T.init():
        C[i, c] = 0.0
    C[i, c] = C[i, c] + A[i, j] * B[j, c]
"""
SPMM_BUFFERS = {"A": "I, J", "B": "N, K", "C": "I, K"}

SOFTMAX = """
Most = T.sp.alloc_buffer((I,), "float64")
Total = T.sp.alloc_buffer((I,), "float64")
P = T.sp.alloc_buffer((I, J), "float64")
with T.sp.iteration([I], "S", "rows") as [i]:
    with T.sp.iteration([J], "R", "most") as [j]:
        with T.init():
            Most[i] = T.float64("-inf")
        Most[i] = T.max(Most[i], A[i, j])
    with T.sp.iteration([J], "S", "powers") as [j_1]:
        P[i, j_1] = A[i, j_1] - Most[i]
    with T.sp.iteration([J], "S", "in_place") as [j_2]:
        P[i, j_2] = T.exp(P[i, j_2])
    with T.sp.iteration([J], "R", "total") as [j_3]:
        with T.init():
            Total[i] = 0.0
        Total[i] = Total[i] + P[i, j_3]
    with T.sp.iteration([J], "S", "quotients") as [j_4]:
        C[i, j_4] = P[i, j_4] / Total[i]
"""

PROGRAMS = {
    "product": (SPMM, SPMM_BUFFERS),
    "softmax": (SOFTMAX, {"A": "I, J", "C": "I, J"}),
    "fused axes": (
        """
with T.sp.iteration([T.sp.fuse(I, J), K], "SRS", "product") as [i, j, c]:
    with T.init():
        C[i, c] = 0.0
    C[i, c] = C[i, c] + A[i, j] * B[j, c]
""",
        SPMM_BUFFERS,
    ),
    "square": (
        """
with T.sp.iteration([I, J], "SS", "square") as [i, j]:
    C[i, j] = A[i, j] * A[i, j] + 3.0 * A[i, j]
""",
        {"A": "I, J", "C": "I, J"},
    ),
    "bias as init": (
        """
with T.sp.iteration([I, J, K], "SRS", "product") as [i, j, c]:
    with T.init():
        C[i, c] = Bias[c] * Bias[c]
    C[i, c] = C[i, c] + A[i, j] * B[j, c]
""",
        {"A": "I, J", "B": "N, K", "Bias": "K", "C": "I, K"},
    ),
    "two results, one of which is read": (
        """
with T.sp.iteration([I, J], "SR", "sums") as [i, j]:
    with T.init():
        C[i] = 0.0
    C[i] = C[i] + A[i, j] * X[j]
with T.sp.iteration([I], "S", "squares") as [i_1]:
    D[i_1] = C[i_1] * C[i_1]
""",
        {"A": "I, J", "X": "N", "C": "I", "D": "I"},
    ),
    "let and condition": (
        """
with T.sp.iteration([I, J], "SR", "sums") as [i, j]:
    with T.init():
        C[i] = 0.0
    t = T.tanh(A[i, j]) * X[j]
    if X[j] > 0.0:
        C[i] = C[i] + t * t
""",
        {"A": "I, J", "X": "N", "C": "I"},
    ),
    "else": (
        """
with T.sp.iteration([I, J], "SS", "branches") as [i, j]:
    if A[i, j] > 0.0:
        C[i, j] = T.log(A[i, j])
    else:
        C[i, j] = A[i, j] * X[j]
""",
        {"A": "I, J", "X": "N", "C": "I, J"},
    ),
    "values that are chosen": (
        """
with T.sp.iteration([I, J], "SS", "chosen") as [i, j]:
    C[i, j] = T.Select(A[i, j] > 0.0, T.sqrt(A[i, j]), X[j]) + T.if_then_else(j < 2, X[j + 2], A[i, j])
""",
        {"A": "I, J", "X": "N", "C": "I, J"},
    ),
    "scattered": (
        """
with T.sp.iteration([I, J], "RS", "scatter") as [i, j]:
    with T.init():
        C[j] = 0.0
    C[j] = C[j] + A[i, j] * X[i]
""",
        {"A": "I, J", "X": "I", "C": "N"},
    ),
    "least": (
        """
C = T.sp.alloc_buffer((I,), "float64")
with T.sp.iteration([I, J], "SR", "least") as [i, j]:
    with T.init():
        C[i] = T.float64("inf")
    C[i] = T.min(C[i], A[i, j] * X[j])
with T.sp.iteration([I], "S", "finite") as [i_1]:
    D[i_1] = T.Select(C[i_1] < 1e300, C[i_1] * C[i_1], 0.0)
""",
        {"A": "I, J", "X": "N", "D": "I"},
    ),
    "difference": (
        """
with T.sp.iteration([I, J], "SR", "difference") as [i, j]:
    with T.init():
        C[i] = X[i]
    if A[i, j] > 0.0:
        C[i] = C[i] - A[i, j] * A[i, j]
""",
        {"A": "I, J", "X": "I", "C": "I"},
    ),
    "constant factor of a nest": (
        """
with T.sp.iteration([I, K], "SR", "repeated") as [i, c]:
    with T.init():
        C[i] = 0.0
    C[i] = C[i] + X[i]
""",
        {"X": "I", "C": "I"},
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_the_program(name):
    body, buffers = PROGRAMS[name]
    checked_gradients(program(body, buffers), arguments_of(buffers))


def test_the_adjoint_of_a_product_is_a_sampled_product_and_a_transposed_one():
    text = print_module(adjoint_of(program(SPMM, SPMM_BUFFERS)))
    assert 'T.sp.iteration([I, J, K], "SSR", "product_A_grad")' in text
    assert 'T.sp.iteration([I, J, K], "RSS", "product_B_grad")' in text


def test_equal_values_share_the_gradient_of_their_maximum():
    body = """
with T.sp.iteration([I, J], "SR", "most") as [i, j]:
    with T.init():
        C[i] = T.float64("-inf")
    C[i] = T.max(C[i], A[i, j])
"""
    adjoint = adjoint_of(program(body, {"A": "I, J", "C": "I"}))
    gradient = np.zeros(6)
    run(
        adjoint,
        {
            "a": np.array([1.0, 1.0, 2.0, 5.0, 5.0, 3.0]),
            "c": np.array([1.0, -np.inf, 5.0, 3.0]),
            "c_grad": np.array([1.0, 1.0, 4.0, 1.0]),
            "a_grad": gradient,
            "p": INDPTR,
            "q": INDICES,
            "m": 4,
            "n": 5,
        },
    )
    assert gradient.tolist() == [0.5, 0.5, 0.0, 2.0, 2.0, 1.0]


def test_a_maximum_under_a_condition_has_the_gradients_of_differences():
    body = """
with T.sp.iteration([I, J], "SR", "most") as [i, j]:
    with T.init():
        C[i] = T.float64("-inf")
    if A[i, j] < 2.0:
        C[i] = T.max(C[i], A[i, j] * A[i, j])
"""
    buffers = {"A": "I, J", "C": "I"}
    arguments = {**arguments_of(buffers), "a": np.array([1.0, -1.5, 2.5, 0.5, 0.25, 1.0])}
    assert checked_gradients(program(body, buffers), arguments)["a"][2] == 0


def test_an_init_that_runs_again_for_an_element_is_refused():
    body = """
with T.sp.iteration([N], "R", "outer") as [j]:
    with T.sp.iteration([I], "S", "inner") as [i]:
        with T.init():
            C[i] = 0.0
        C[i] = C[i] + A[i] * B[j]
"""
    with pytest.raises(UnsupportedError) as caught:
        adjoint_of(program(body, {"A": "I", "B": "N", "C": "I"}))
    assert caught.value.code == "adjoint.init"


def test_only_what_the_gradients_need_is_passed():
    module = program(SPMM, SPMM_BUFFERS)
    assert names_of(adjoint_of(module, wrt=["B"])) == [
        "a",
        "p",
        "q",
        "c_grad",
        "b_grad",
        "m",
        "n",
        "k",
    ]
    arguments = arguments_of(SPMM_BUFFERS)
    assert [*checked_gradients(module, arguments, wrt=["B"])] == ["b"]


def test_a_result_that_the_program_reads_keeps_the_gradient_that_was_passed():
    body, buffers = PROGRAMS["two results, one of which is read"]
    arguments = arguments_of(buffers)
    checked_gradients(program(body, buffers), arguments, outputs=["D"])
    checked_gradients(program(body, buffers), arguments, outputs=["C"])


def test_a_program_without_a_path_gives_gradients_of_zeros():
    body = """
with T.sp.iteration([I, K], "SS", "copied") as [i, c]:
    C[i, c] = B[i, c]
with T.sp.iteration([I], "S", "signs") as [i_1]:
    D[i_1] = T.Select(X[i_1] > 0.0, 1.0, 2.0)
"""
    buffers = {"B": "I, K", "X": "I", "C": "I, K", "D": "I"}
    gradients = checked_gradients(program(body, buffers), arguments_of(buffers))
    assert np.all(gradients["x"] == 0)


def test_values_are_converted_back():
    module = parse_module("""
@T.prim_func
def f(x: T.handle, y: T.handle, m: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    X = T.sp.match_buffer(x, (I,), "float32")
    Y = T.sp.match_buffer(y, (I,), "float64")
    with T.sp.iteration([I], "S", "f") as [i]:
        Y[i] = T.float64(X[i]) * 2.0
""")
    text = print_module(adjoint_of(module))
    assert "X_grad[i] = T.float32(Y_grad[i] * 2.0)" in text


REFUSED = {
    "adjoint.expression": (
        """
with T.sp.iteration([I], "S", "rounded") as [i]:
    C[i] = T.floor(X[i])
""",
        {"X": "I", "C": "I"},
        "The operation 'floor' has no derivative.",
    ),
    "adjoint.reduction": (
        """
with T.sp.iteration([I, J], "SR", "factors") as [i, j]:
    with T.init():
        C[i] = 1.0
    C[i] = C[i] * A[i, j]
""",
        {"A": "I, J", "C": "I"},
        "Iteration 'factors' reduces 'C' with the reducer 'mul'",
    ),
    "adjoint.init": (
        """
with T.sp.iteration([I], "S", "outer") as [i]:
    with T.init():
        C[i] = 0.0
    with T.sp.iteration([J], "R", "inner") as [j]:
        C[i] = C[i] + A[i, j]
""",
        {"A": "I, J", "C": "I"},
        "The init of iteration 'outer' is not that of one update in its body",
    ),
    "adjoint.overwritten": (
        """
with T.sp.iteration([I, J], "SR", "sums") as [i, j]:
    with T.init():
        C[i] = 0.0
    C[i] = C[i] + A[i, j] * X[i]
with T.sp.iteration([I], "S", "in_place") as [i_1]:
    X[i_1] = C[i_1]
""",
        {"A": "I, J", "X": "I", "C": "I"},
        "The buffer 'X' is read before it is written",
    ),
    "adjoint.statement": (
        """
bounds = T.comm_reducer(
    lambda a, b, c, d: (T.min(a, c), T.max(b, d)), (T.float64("inf"), T.float64("-inf"))
)
with T.sp.iteration([I, J], "SR", "bounds") as [i, j]:
    with T.init():
        C[i] = T.float64("inf")
        D[i] = T.float64("-inf")
    C[i], D[i] = bounds(C[i], D[i], A[i, j], A[i, j])
""",
        {"A": "I, J", "C": "I", "D": "I"},
        "The adjoint of a statement of type Combine is not defined.",
    ),
    "adjoint.order": (
        """
T_row = T.sp.alloc_buffer((K,), "float64")
with T.sp.iteration([I], "S", "rows") as [i]:
    with T.sp.iteration([K], "S", "copied") as [c]:
        T_row[c] = B[i, c]
    with T.sp.iteration([K], "R", "added") as [c_1]:
        with T.init():
            C[i] = 0.0
        C[i] = C[i] + T_row[c_1]
""",
        {"B": "I, K", "C": "I"},
        "An iteration around 'copied' and 'added' uses elements of 'T_row' again",
    ),
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_has_no_adjoint_is_refused_by_name(code):
    body, buffers, message = REFUSED[code]
    with pytest.raises(UnsupportedError) as raised:
        adjoint_of(program(body, buffers))
    assert raised.value.code == code
    assert message in str(raised.value)


@pytest.mark.parametrize(("option", "name"), [("wrt", "C"), ("wrt", "Z"), ("outputs", "A")])
def test_other_buffers_are_refused(option, name):
    with pytest.raises(ArgumentError, match=f"'{name}' in {option}= is not ") as raised:
        adjoint_of(program(SPMM, SPMM_BUFFERS), **{option: [name]})
    assert raised.value.code == "adjoint.buffer"
